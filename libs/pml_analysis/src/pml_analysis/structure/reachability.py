"""Reachability pass: calls after statements that always leave."""

from collections.abc import Iterable, Iterator

from pml_analysis.structure.marks import Places
from pml_analysis.syntax.node_kinds import BRANCH_PARTS, HOISTED, JUMPS, STATEMENT_LISTS
from pml_analysis.syntax.tree import Node, Tree
from pml_analysis.text.problems import Problem


def unreachable_calls(tree: Tree, calls: Iterable[Node]) -> Iterator[Problem]:
    """Return the first call of each unreachable run of statements."""
    starts = {call.index: call for call in calls}
    places = Places(starts)
    leaving: set[int] = {node.index for node in tree.of(*JUMPS)}
    around = tree.of(*STATEMENT_LISTS, *BRANCH_PARTS)
    around.sort(key=lambda node: -node.index)  # inner ones first
    dead_until = 0
    found: list[tuple[Node, Node]] = []
    for node in around:
        if node.kind in STATEMENT_LISTS:
            first = next((child for child in node.children if child.index in leaving), None)
            if first is not None:
                leaving.add(node.index)
                found += ((first, late) for late in node.children if late.index > first.index)
        elif _always_leaves(node, leaving):
            leaving.add(node.index)
    for first, late in sorted(found, key=lambda pair: pair[1].index):
        if late.index >= dead_until and late.kind not in HOISTED and places.within(late):
            call = next(starts[at] for at in range(late.index, late.stop) if at in starts)
            line = tree.position(first).line
            message = (
                f"This is never reached: the statement on line {line} always leaves before it."
            )
            yield Problem(call.start, message)
            dead_until = late.above.stop


def _always_leaves(node: Node, leaving: set[int]) -> bool:
    """Whether nothing after a statement is ever reached from it."""
    inside = {child.field or child.kind: child.index in leaving for child in node.children}
    match node.kind:
        case "if_statement":
            return inside.get("consequence", False) and inside.get("alternative", False)
        case "try_statement":
            body = inside["body"] and inside.get("handler", True)
            return body or inside.get("finalizer", False)
        case _:  # the block of a catch, an else or a finally
            return any(inside.values())
