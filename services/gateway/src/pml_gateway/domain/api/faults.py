"""Faults of requests in words: never a regular expression."""

from collections.abc import Mapping
from typing import Final, cast, get_args

from pydantic import StringConstraints

from pml_common.contracts.capability import WholeTag
from pml_common.contracts.cursors import PlaceCursor
from pml_common.contracts.dns import Cursor, Glob, Label, RecordReference
from pml_common.contracts.fault_words import words_of
from pml_gateway.domain.api.api import IdempotencyKey
from pml_gateway.domain.api.records import Text
from pml_gateway.domain.sources.dag_source import TaskId, ToolId


def _pattern_of(text: object) -> str:
    """Return the regular expression of a constrained text."""
    found = (each.pattern for each in get_args(text) if isinstance(each, StringConstraints))
    return str(next(found))


_ALLOWED: Final = {
    _pattern_of(text): words
    for text, words in (
        (
            RecordReference,
            "a capability, as fs:read_json or fs:read_json@2: 1 to 256 characters, none NUL",
        ),
        (Glob, "1 to 128 characters, none NUL"),
        (
            Label,
            "a tag, as json: 1 to 64 lower-case letters (a to z), digits, dots, hyphens and "
            "underscores, beginning with a letter or digit",
        ),
        (Cursor, "`next_cursor` of a page, as it is"),
        (PlaceCursor, "`next_cursor` of a page, as it is"),
        (WholeTag, "a whole version tag, as v1.2.0"),
        (IdempotencyKey, "1 to 200 printable ASCII characters, none a space"),
        (Text, "text that is not blank, without NUL"),
        (TaskId, "1 to 300 characters, none a space or a square bracket"),
        (ToolId, "a tool, as fs:read_file: its server, a colon and its name"),
    )
}
"""Words by regular expression; those of every text in a request."""


def in_words(error: Mapping[str, object]) -> str:
    """Describe an error of Pydantic, without its field."""
    if error["type"] == "string_pattern_mismatch":
        context = cast(Mapping[str, object], error["ctx"])
        return f"must be {_ALLOWED.get(str(context['pattern']), 'text of another form')}"
    return words_of(error)
