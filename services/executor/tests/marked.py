"""Instrumented programs written so that one sees what is the author's: «insertions» are marked."""

import re

_MARKED = re.compile("«([^»]*)»")


def instrumented(marked: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The text that runs, and the spans of it that are marked."""
    spans: list[tuple[int, int]] = []
    for count, match in enumerate(_MARKED.finditer(marked)):
        start = match.start() - 2 * count
        spans.append((start, start + len(match[1])))
    return marked.replace("«", "").replace("»", ""), tuple(spans)


def authors(marked: str) -> str:
    """The text without what is marked."""
    return _MARKED.sub("", marked)
