"""Syntax errors: where the parser failed, with messages an author can act on."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from tree_sitter import Node as RawNode
from tree_sitter import Tree as RawTree

from pml_analysis.syntax.parse_errors import ParseError, first_jsx, parse_errors
from pml_analysis.syntax.parser import code_points
from pml_analysis.syntax.source import Source
from pml_analysis.text.characters import misplaced_characters
from pml_analysis.text.problems import Problem

_CLOSING: Final = {"(": ")", "[": "]", "{": "}", "${": "}"}
_MAX_TOKEN: Final = 30
_QUOTES: Final = frozenset({'"', "'", "`"})
_MAX_ERRORS: Final = 3
_MAX_INSPECTED: Final = 200
_MAX_JSX: Final = 64 * 1024
_JSX: Final = "JSX is not supported: a program is TypeScript; build a text, or an object."


def syntax_errors(raw: RawTree, source: Source) -> list[Problem]:
    """Return the first few errors of a text that does not parse, in source order; at least one.

    An unclosed quote makes everything after it look wrong, so it is reported alone; so are JSX, and
    characters that are illegal in code.
    """
    text = source.text.encode()
    found = list(islice(parse_errors(raw), _MAX_INSPECTED))
    shown = list(_open_quotes(found))[-_MAX_ERRORS:]
    if not shown and (odd := misplaced_characters(raw, source)):
        return odd[:_MAX_ERRORS]
    if not shown and len(text) <= _MAX_JSX and (jsx := first_jsx(source)) is not None:
        shown = [(jsx, _JSX)]
    if not shown:
        end = len(text.rstrip())
        shown = [
            _missing(gap, text) if gap.node.is_missing else _error(gap.node, end)
            for gap in found[:_MAX_ERRORS]
        ]
    offsets = code_points(source.text)
    problems = (Problem(at if offsets is None else offsets[at], why) for at, why in shown)
    return sorted(dict.fromkeys(problems), key=lambda problem: problem.offset)


def _error(node: RawNode, end: int) -> tuple[int, str]:
    """Return offset in bytes and message for text that had to be skipped."""
    opened = _open_bracket(node)
    if opened is not None:
        return opened.start_byte, f"{_shown(opened)} is never closed."
    if node.end_byte >= end and node.child_count > 1:
        return node.end_byte, "The program ends in the middle of a statement."
    last = node.children[-1] if node.children else node
    while last.children:
        last = last.children[0]
    return last.start_byte, f"Unexpected {_shown(last)}."


def _missing(gap: ParseError, text: bytes) -> tuple[int, str]:
    """Return offset in bytes and message for syntax that had to be made up."""
    node, siblings = gap
    at = node.start_byte
    if node.is_named:
        return at, "Expected an expression here."
    if node.type == ";":
        while text[at : at + 1].isspace():
            at += 1
        word = text[at : at + _MAX_TOKEN].decode(errors="ignore").split(maxsplit=1)
        return at, f'Unexpected "{word[0] if word else "end"}".'
    opened = next((n for n in siblings if _CLOSING.get(n.type) == node.type), None)
    place = f", to close {_shown(opened)} on line {opened.start_point.row + 1}" if opened else ""
    return at, f'Expected "{node.type}"{place}.'


def _open_quotes(found: Sequence[ParseError]) -> Iterator[tuple[int, str]]:
    for node, _ in found:
        quote = _open_quote(node)
        if quote is not None:
            yield quote.start_byte, "This text is never closed by a second quote."


def _open_quote(error: RawNode) -> RawNode | None:
    opened: RawNode | None = None
    for child in error.children:
        if opened is None and child.type in _QUOTES:
            opened = child
        elif opened is not None and child.type == opened.type:
            opened = None
    return opened


def _open_bracket(error: RawNode) -> RawNode | None:
    """Return the innermost bracket that skipped text opens and does not close."""
    opened: list[RawNode] = []
    for child in error.children:
        if child.type in _CLOSING:
            opened.append(child)
        elif opened and child.type == _CLOSING[opened[-1].type]:
            opened.pop()
    return opened[-1] if opened else None


def _shown(token: RawNode) -> str:
    text = (token.text or b"").decode()
    return f'"{text[:_MAX_TOKEN]}"'
