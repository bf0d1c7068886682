"""Namespaces and words for suggested names, as data."""

from collections.abc import Sequence
from typing import Final

NAMESPACE_RULES: Final[Sequence[tuple[str, Sequence[str]]]] = (
    ("fs", ("fs:*", "file:*", "files:*", "filesystem*:*")),
    ("git", ("git:*", "git-*:*", "git_*:*", "github*:*", "gitlab*:*")),
    ("db", ("db:*", "*sql*:*", "postgres*:*", "mongo*:*", "redis*:*", "*:query", "*:execute_sql")),
    ("api", ("http*:*", "rest*:*", "graphql*:*", "fetch*:*", "*:fetch")),
    ("shell", ("shell*:*", "bash*:*", "terminal*:*", "*:exec")),
    ("web", ("web*:*", "browser*:*", "playwright*:*", "puppeteer*:*", "search*:*")),
    ("mail", ("mail*:*", "email*:*", "gmail*:*", "smtp*:*")),
    ("time", ("time*:*", "calendar*:*", "clock*:*")),
    ("transform", ("json*:*", "csv*:*", "xml*:*", "yaml*:*", "text*:*")),
)
"""Namespaces, each with the patterns of the tools that it is for."""

FALLBACK_NAMESPACE: Final = "util"

_STOP_WORDS: Final = """
    a all an and any are as at be by can capability de des do du each en et for from get give given
    how i if in into is it its la le les me mes mon my of on or our out please program sur that the
    their them then there these this to tool un une use used user using want we what when which will
    with you your
"""
STOP_WORDS: Final = frozenset(_STOP_WORDS.split())
"""Words of an intent that say nothing about it, in English and French."""
