"""Lone surrogates: halves of characters, which a program can write as escapes and no message can
hold."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, cast

from pml_analysis.syntax.literals import is_unicode, string_value
from pml_analysis.syntax.tree import Tree
from pml_analysis.text.problems import Problem

_ESCAPE: Final = re.compile(r"\\u(?:\{0*)?[dD][89a-fA-F]")


def lone_surrogate(tree: Tree, told: object) -> Problem | None:
    """Return where the program writes a lone surrogate that what is told of it, in mappings and
    sequences, contains."""
    written = _ESCAPE.search(tree.source.text)
    if written is None:  # most programs: only escapes can write one
        return None
    halves = {text for text in _texts(told) if not is_unicode(text)}
    if not halves:
        return None
    strings = tree.of("string")
    begins = (node.start for node in strings if string_value(tree.text(node)) in halves)
    message = (
        "This has half a character, a lone surrogate, which nothing that is told of a program can "
        "have, as the names of arguments: write the whole character, or compute it "
        "(String.fromCharCode)."
    )
    return Problem(next(begins, written.start()), message)


def _texts(told: object) -> Iterator[str]:
    """Yield all texts, names of fields too."""
    waiting = [told]
    while waiting:
        found = waiting.pop()
        if isinstance(found, str):
            yield found
        elif isinstance(found, dict):
            fields = cast(dict[object, object], found)
            waiting += [*fields.keys(), *fields.values()]
        elif isinstance(found, list | tuple):
            waiting += cast(Sequence[object], found)
