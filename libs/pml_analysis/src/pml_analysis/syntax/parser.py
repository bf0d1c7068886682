"""Text to tree: tree-sitter parses, the cursor walk keeps the nodes that passes read."""

from functools import cache
from typing import Final, NamedTuple

import tree_sitter_typescript
from tree_sitter import Language, Parser, TreeCursor
from tree_sitter import Node as RawNode
from tree_sitter import Tree as RawTree

from pml_analysis.syntax.node_kinds import CASTS, DROPPED, LEAVES
from pml_analysis.syntax.source import Source
from pml_analysis.syntax.stand_ins import alternative_reading, restore_kinds, with_stand_ins
from pml_analysis.syntax.tree import Node, Tree

_TOKENS = frozenset({"*", ",", "accessor", "async", "await", "get", "set", "static"})
"""Tokens that say something their parent's kind does not; so do those with a field (operators)."""
_SILENT: Final = frozenset(["(", ")", "{", "}", "[", "]", ".", ":", "=>", "`", "${", '"', "'"])
"""Tokens to which the grammar never gives a place of their own."""

_ONLY_IN = {
    ",": frozenset({"array", "array_pattern"}),
    "await": frozenset({"for_in_statement"}),
}
"""Tokens that mean something in some places only: a comma beside a hole, `for await`."""

_NOTHING: list[Node] = []
"""The children of every leaf: most nodes are leaves."""


_CHUNK: Final = 16 * 1024
_MIN_STEPS: Final = 500
_BYTES_PER_STEP: Final = 4
"""Hundreds of operations that the parser may spend. Most programs take one for 80 bytes, `a;`
repeated one for 16; `case 1:`, where it is an error, one for each byte at 4 KiB and four at 16
KiB."""


class TooBroken(Exception):
    """The text has errors, and locating them takes too long."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"too many errors before offset {offset}")
        self.offset = offset


class TooDeep(Exception):
    """The text nests deeper than the passes support."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"nested too deeply at offset {offset}")
        self.offset = offset


@cache
def language() -> Language:
    """The TypeScript grammar."""
    return Language(tree_sitter_typescript.language_typescript())


class _Kind(NamedTuple):
    """Properties of a node kind: whether its nodes are kept, whether they may have children, and
    the parents to which keeping them is restricted, if any."""

    name: str
    is_silent: bool
    is_kept: bool
    is_open: bool
    parents: frozenset[str] | None


@cache
def _kinds() -> list[_Kind]:
    """Return the kinds by their id."""
    grammar = language()
    found: list[_Kind] = []
    for number in range(grammar.node_kind_count):
        name = grammar.node_kind_for_id(number) or ""
        is_named = grammar.node_kind_is_named(number)
        is_kept = name in _TOKENS or (is_named and name not in DROPPED)
        is_open = is_named and name not in LEAVES
        found.append(_Kind(name, name in _SILENT, is_kept, is_open, _ONLY_IN.get(name)))
    return found


@cache
def _fields() -> dict[int | None, str | None]:
    grammar = language()
    numbers = range(1, grammar.field_count + 1)
    return {None: None, **{number: grammar.field_name_for_id(number) for number in numbers}}


def parse(source: Source) -> RawTree:
    """Parse a text that UTF-8 can hold; errors are nodes of the result. Raises TooBroken."""
    text = with_stand_ins(source.text.encode())
    raw = _parsed(text)
    if raw.root_node.has_error and (other := alternative_reading(text)) is not None:
        again = _parsed(other)
        return raw if again.root_node.has_error else again
    return raw


def _parsed(text: bytes) -> RawTree:
    """Parse a text with the grammar; its search for the least error is bounded by the length."""
    left, reached = _MIN_STEPS + len(text) // _BYTES_PER_STEP, 0

    def is_over(offset: int, _: bool) -> bool:
        nonlocal left, reached
        left, reached = left - 1, max(offset, reached)
        return left < 0

    def read(offset: int, _: object) -> bytes:
        return text[offset : offset + _CHUNK]

    try:
        return Parser(language()).parse(read, progress_callback=is_over)
    except ValueError as error:
        raise TooBroken(len(text[:reached].decode(errors="ignore"))) from error


def code_points(text: str) -> list[int] | None:
    """Map byte offsets in UTF-8 to code points; None when they are equal."""
    if text.isascii():
        return None
    offsets: list[int] = []
    for index, char in enumerate(text):
        offsets += [index] * len(char.encode())
    return [*offsets, len(text)]


def view(raw: RawTree, source: Source, *, nesting: int) -> Tree:
    """Return the tree of a text without errors. Raises TooDeep beyond `nesting` levels."""
    offsets = code_points(source.text)
    try:
        nodes = _convert(raw, nesting)
    except TooDeep as error:
        raise TooDeep(error.offset if offsets is None else offsets[error.offset]) from None
    if offsets is not None:
        for node in nodes:
            node.start, node.end = offsets[node.start], offsets[node.end]
    restore_kinds(nodes, source.text)
    return Tree(source, nodes, raw)


def _convert(raw: RawTree, nesting: int) -> list[Node]:  # noqa: C901 - calls would cost a tenth
    """Return the nodes that are kept, ranges in bytes. Every program passes here: keep it lean."""
    kinds, fields = _kinds(), _fields()
    cursor = raw.walk()
    enter, leave, advance = cursor.goto_first_child, cursor.goto_parent, cursor.goto_next_sibling
    top = raw.root_node
    siblings: list[Node] = []
    parent = Node("program", None, top.start_byte, top.end_byte, None, 0, siblings, 1)
    nodes = [parent]
    ends: dict[int, int] = {}  # actual ends of nodes that end after a comment in the grammar
    depth, count, in_cast = 1, 1, False
    here = cursor.node if enter() else None
    while here is not None:
        kind, is_silent, is_kept, is_open, parents = kinds[here.kind_id]
        field = None if is_silent else fields[cursor.field_id]
        if is_kept or field is not None:
            start, end = here.byte_range
            node = Node(kind, field, start, end, parent, count, _NOTHING, count + 1)
            if parents is None or parent.kind in parents:
                nodes.append(node)
                siblings.append(node)
                count += 1
            if is_open and not (in_cast and siblings[0] is not node) and enter():
                node.children = siblings = []
                parent, depth, in_cast = node, depth + 1, kind in CASTS
                if depth > nesting:
                    raise TooDeep(start)
                here = cursor.node
                continue
            if end - start > nesting and _is_deeper(here, nesting - depth):
                raise TooDeep(start)
        while not advance():
            parent.stop = count
            if kind in DROPPED:  # the last of its parent
                before = _before_comments(cursor)
                ends[parent.end] = ends.get(before, before)
                kind = ""
            if ends:
                parent.end = ends.get(parent.end, parent.end)
            if parent.parent is None:
                return nodes
            parent, depth = parent.parent, depth - 1
            siblings, in_cast = parent.children, parent.kind in CASTS
            leave()
        here = cursor.node
    return nodes


def _is_deeper(leaf: RawNode, levels: int) -> bool:
    """Whether a leaf of the tree, such as a type, has more levels: the engine that runs it parses
    them too."""
    cursor, depth = leaf.walk(), 0
    while depth <= levels:
        if cursor.goto_first_child():
            depth += 1
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return False
            depth -= 1
    return True


def _before_comments(cursor: TreeCursor) -> int:
    """Return the end of the node before the comments at whose last the cursor is."""
    while cursor.goto_previous_sibling():
        here = cursor.node
        if here is not None and here.type not in DROPPED:
            return here.end_byte
    return 0
