"""Patterns in which `*` stands for any text and `?` for any character."""

import re


def like_of(glob: str) -> str:
    r"""Return the pattern as SQL's LIKE reads it, with `\` as its escape."""
    escaped = re.sub(r"([\\%_])", r"\\\1", glob)
    return escaped.replace("*", "%").replace("?", "_")
