"""Values from outside a run (the caller's arguments, the results of tools), and parts of them."""

from typing import Final, NamedTuple

from pml_analysis.names.origins import Origins
from pml_analysis.names.values import FromArguments, FromCall, Origin, holds_tools
from pml_analysis.structure.marks import combinator, combined
from pml_analysis.syntax.patterns import Part, Path
from pml_analysis.syntax.tree import Node, Tree

ARGUMENTS: Final = -1
"""Root of the caller's arguments; the root of a result is the index of its call."""

_MAX_LISTS: Final = 10


class RootedPart(NamedTuple):
    """A part of the caller's arguments, or of the result of the call with the index `root`."""

    root: int
    path: Path

    def meets(self, other: "RootedPart") -> bool:
        """Whether it may be the other, be inside it, or contain it; a step of None matches any."""
        return self.root == other.root and all(
            one is None or step is None or one == step
            for one, step in zip(self.path, other.path, strict=False)
        )


def rooted_part(origins: Origins, origin: Origin) -> RootedPart | None:
    """Return the root that a value of this origin is a part of; None without one."""
    for _ in range(_MAX_LISTS):
        if isinstance(origin, FromArguments):
            return RootedPart(ARGUMENTS, origin.path)
        if not isinstance(origin, FromCall):
            return None
        if holds_tools(origins.of(origin.call["function"])):
            return RootedPart(origin.call.index, origin.path)
        value, path = awaited_element(origins.tree, origin.call, origin.path)
        if value is origin.call:
            return None
        origin = origins.part(Part(value, path))
    return None


def awaited_element(tree: Tree, value: Node, path: Path) -> tuple[Node, Path]:
    """Return the element that a part of `Promise.all([…])` is the result of; else the value
    itself."""
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
