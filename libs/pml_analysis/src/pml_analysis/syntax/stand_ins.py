"""Stand-ins: replacements of the same length for text that the grammar misreads.

The parser gets these bytes; nodes have the ranges of the author's text, and read that. The content
of literals and comments may be replaced, too: it makes no nodes.
"""

import re
from typing import Final

from pml_analysis.syntax.tree import Node

_LONE_RETURN: Final = re.compile(rb"\r(?!\n)")
_CONDITIONAL: Final = re.compile(rb"\?\.(?=[0-9])")
_ROUND: Final = re.compile(rb"(\bfor\s+await\s*\(\s*)let(?=\s*[\[{])")
_ESCAPE: Final = re.compile(
    rb"\\(?:u\{0*(?:10|[0-9a-fA-F])?[0-9a-fA-F]{1,4}\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|([ux])|.)",
    re.DOTALL,
)
_LESS: Final = re.compile(rb"(<\s*)-(?!-)")
_REPLACED: Final = {"~": "-", "var": "let"}
"""Tokens that may be stand-ins, and the tokens they replace."""

_STAND_IN: Final = re.compile(r"<\s*-|\bfor\s+await\s*\(\s*let\b")


def with_stand_ins(text: bytes) -> bytes:
    r"""Replace text that the grammar always misreads:

    - a carriage return alone ends a line: a line feed,
    - `a?.5:b` is a choice of numbers: `a?15:b`,
    - `for await (let [a] of b)` declares: `var`,
    - a tagged template may have any escapes, `` t`\users` ``: some without a meaning.
    """
    text = _LONE_RETURN.sub(b"\n", text)
    if b"?." in text:
        text = _CONDITIONAL.sub(b"?1", text)
    if b"await" in text:
        text = _ROUND.sub(rb"\1var", text)
    return _ESCAPE.sub(_meaningless, text) if b"\\" in text else text


def alternative_reading(text: bytes) -> bytes | None:
    """Return a variant of a text that does not parse, in which nothing after `<` is a type:
    `f(a < -1, b)` as `f(a < ~1, b)`; None where no such text occurs."""
    other = _LESS.sub(rb"\1~", text)
    return None if other == text else other


def restore_kinds(nodes: list[Node], text: str) -> None:
    """Give stand-in tokens the kinds of the tokens they replace."""
    if _STAND_IN.search(text) is None:
        return
    for node in nodes:
        real = _REPLACED.get(node.kind)
        if real is not None and text.startswith(real, node.start):
            node.kind = real


def _meaningless(match: re.Match[bytes]) -> bytes:
    return match[0] if match[1] is None else b"\\q"
