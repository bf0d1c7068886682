"""Text that the parser could not read."""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import tree_sitter_typescript
from tree_sitter import Language, Parser, Query, QueryCursor
from tree_sitter import Node as RawNode
from tree_sitter import Tree as RawTree

from pml_analysis.syntax.source import Source


class ParseError(NamedTuple):
    """Text that had to be skipped (ERROR) or made up (MISSING), among the nodes beside it."""

    node: RawNode
    siblings: list[RawNode]


def parse_errors(raw: RawTree) -> Iterator[ParseError]:
    """Yield the text that the parser could not read, in source order.

    The parent of a node is never requested: in a deep tree that crashes the process.
    """
    waiting = [ParseError(raw.root_node, [])]
    while waiting:
        here = waiting.pop()
        node = here.node
        if node.is_error or node.is_missing:
            yield here
        inside = node.children
        waiting.extend(ParseError(child, inside) for child in reversed(inside) if child.has_error)


def first_jsx(source: Source) -> int | None:
    """Return the position of the first JSX (offset in bytes) in a text that is flawless TSX; None
    in any other."""
    text = source.text.encode()
    if b"/>" not in text and b"</" not in text:
        return None
    raw = Parser(_tsx()).parse(text)
    if raw.root_node.has_error:
        return None
    found = QueryCursor(_jsx()).captures(raw.root_node).get("jsx", [])
    return min((node.start_byte for node in found), default=None)


@cache
def _tsx() -> Language:
    return Language(tree_sitter_typescript.language_tsx())


@cache
def _jsx() -> Query:
    return Query(_tsx(), "[(jsx_element) (jsx_self_closing_element)] @jsx")
