"""The tree that passes read: tree-sitter's nodes, in source order, with exact ranges.

Left out, because the text keeps them and no pass needs them: comments, punctuation, keywords that
the node's kind implies, and everything inside types, strings and regular expressions.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Tree as RawTree

from pml_analysis.syntax.literals import identifier_name
from pml_analysis.syntax.node_kinds import FUNCTIONS, TYPES, WRAPPERS
from pml_analysis.syntax.source import Position, Source


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """One node. `start` and `end` are offsets in code points; `nodes[index:stop]` is its subtree.

    `field` is the grammar's name for its place in the parent.
    """

    kind: str
    field: str | None
    start: int
    end: int
    parent: "Node | None"
    index: int
    children: "list[Node]"
    stop: int = 0

    def child(self, field: str) -> "Node | None":
        """Return the first child in a field of the grammar."""
        for child in self.children:
            if child.field == field:
                return child
        return None

    def __getitem__(self, field: str) -> "Node":
        """Return the child in a field that the grammar always fills."""
        for child in self.children:
            if child.field == field:
                return child
        raise LookupError(f"{self} has no {field}")

    @property
    def above(self) -> "Node":
        """The parent of a node that is never the root."""
        if self.parent is None:
            raise LookupError(f"{self} is the root")
        return self.parent

    @property
    def operand(self) -> "Node | None":
        """The expression of a node that has one: wrapper, await, spread, return."""
        for child in self.children:
            if child.kind not in TYPES:
                return child
        return None

    @property
    def inner(self) -> "Node":
        """The expression inside a chain of wrappers; the node itself if it is none."""
        node = self
        while node.kind in WRAPPERS and (inside := node.operand) is not None:
            node = inside
        return node

    def __repr__(self) -> str:
        return f"<{self.kind} {self.start}-{self.end}>"


class Tree:
    """A parsed text; `nodes` are in source order, a parent before its children."""

    def __init__(self, source: Source, nodes: list[Node], raw: RawTree) -> None:
        self.source = source
        self.nodes = nodes
        self.raw = raw
        self._text = source.text
        by_kind: defaultdict[str, list[Node]] = defaultdict(list)
        for node in nodes:
            by_kind[node.kind].append(node)
        self._by_kind = dict(by_kind)

    @property
    def root(self) -> Node:
        """The program."""
        return self.nodes[0]

    def of(self, *kinds: str) -> list[Node]:
        """Return all nodes of these kinds, one kind after the other, each in source order."""
        if len(kinds) == 1:
            return self._by_kind.get(kinds[0], [])
        by_kind = self._by_kind
        return [node for kind in kinds if kind in by_kind for node in by_kind[kind]]

    def subtree(self, node: Node) -> Iterator[Node]:
        """Yield a node and everything below it, in source order."""
        for index in range(node.index, node.stop):
            yield self.nodes[index]

    def text(self, node: Node) -> str:
        """Return the author's text of a node."""
        return self._text[node.start : node.end]

    def name(self, node: Node) -> str:
        """Return the name of an identifier, its Unicode escapes decoded."""
        text = self._text[node.start : node.end]
        return identifier_name(text) if "\\" in text else text

    def position(self, node: Node) -> Position:
        """Return the position where a node starts."""
        return self.source.position(node.start)


def returns(node: Node) -> bool:
    """Whether a statement may end the program."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        if found.kind == "return_statement":
            return True
        if found.kind not in FUNCTIONS:
            waiting += found.children
    return False
