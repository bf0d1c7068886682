"""Values from outside a run: the caller's arguments and the results of tools, and the parts
of them that values are."""

from typing import Final, NamedTuple

from pml_analysis.names.origins import Origins
from pml_analysis.names.values import FromArguments, FromCall, Origin, holds_tools
from pml_analysis.structure.marks import combinator, combined
from pml_analysis.syntax.patterns import Part, Path
from pml_analysis.syntax.tree import Node, Tree

ARGUMENTS: Final = -1
"""Stands for the caller's arguments, where a call's index stands for its result."""

_MOST_LISTS: Final = 10


class Rooted(NamedTuple):
    """A part of the caller's arguments, or of the result of the call with the index `root`."""

    root: int
    path: Path

    def meets(self, other: "Rooted") -> bool:
        """Whether it may be the other, in it, or hold it; a step that is None: any."""
        return self.root == other.root and all(
            one is None or step is None or one == step
            for one, step in zip(self.path, other.path, strict=False)
        )


def rooted(origins: Origins, origin: Origin) -> Rooted | None:
    """The root that a value of this origin is a part of; None without one."""
    for _ in range(_MOST_LISTS):
        if isinstance(origin, FromArguments):
            return Rooted(ARGUMENTS, origin.path)
        if not isinstance(origin, FromCall):
            return None
        if holds_tools(origins.of(origin.call["function"])):
            return Rooted(origin.call.index, origin.path)
        value, path = waited_for(origins.tree, origin.call, origin.path)
        if value is origin.call:
            return None
        origin = origins.part(Part(value, path))
    return None


def waited_for(tree: Tree, value: Node, path: Path) -> tuple[Node, Path]:
    """The element that a part of `Promise.all([…])` is the result of; else the value itself."""
    index = path[0] if path else None
    if not isinstance(index, int):
        return value, path
    call = value.inner
    while call.kind == "await_expression" and call.operand is not None:
        call = call.operand.inner
    given = combined(call) if combinator(tree, call) == "all" else None
    if given is None or given.kind != "array":
        return value, path
    items = [child for child in given.children if child.kind != ","]
    is_plain = len(items) * 2 - 1 <= len(given.children) <= len(items) * 2
    if not is_plain or any(item.kind == "spread_element" for item in items) or index >= len(items):
        return value, path
    return items[index], path[1:]
