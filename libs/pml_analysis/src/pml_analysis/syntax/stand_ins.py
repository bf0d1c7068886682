"""Stand-ins: what the grammar reads wrongly, in a form of the same length that it reads rightly.

The parser gets these bytes; nodes have the ranges that the author's text has, and read that. What
stands in literals and comments may be exchanged, too: it makes no nodes.
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
_REAL: Final = {"~": "-", "var": "let"}
"""Tokens that may stand in, and for what."""

_STANDING: Final = re.compile(r"<\s*-|\bfor\s+await\s*\(\s*let\b")


def readable(text: bytes) -> bytes:
    """What the grammar never reads as JavaScript does:

    - a carriage return alone ends a line: a line feed,
    - `a?.5:b` is a choice of numbers: `a?15:b`,
    - `for await (let [a] of b)` declares: `var`,
    - a tagged template may have any escapes, `` t`\\users` ``: some that mean nothing.
    """
    text = _LONE_RETURN.sub(b"\n", text)
    if b"?." in text:
        text = _CONDITIONAL.sub(b"?1", text)
    if b"await" in text:
        text = _ROUND.sub(rb"\1var", text)
    return _ESCAPE.sub(_meaningless, text) if b"\\" in text else text


def second_reading(text: bytes) -> bytes | None:
    """A text that the grammar could not read, in which what follows `<` is no type: `f(a < -1, b)`
    as `f(a < ~1, b)`; None where there is nothing like it."""
    other = _LESS.sub(rb"\1~", text)
    return None if other == text else other


def name_what_stood_in(nodes: list[Node], text: str) -> None:
    """Give tokens that stood in for others the kinds of these."""
    if _STANDING.search(text) is None:
        return
    for node in nodes:
        real = _REAL.get(node.kind)
        if real is not None and text.startswith(real, node.start):
            node.kind = real


def _meaningless(match: re.Match[bytes]) -> bytes:
    return match[0] if match[1] is None else b"\\q"
