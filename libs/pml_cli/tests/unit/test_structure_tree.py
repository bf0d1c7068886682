"""A structure as a tree: what stands under a branch and what after it."""

import pytest
from rich.console import Console

from pml_cli.render.structure import structure_tree
from pml_common.contracts.structure import DecisionNode, Edge, Node, StaticStructure, TaskNode


def task(node_id: str) -> TaskNode:
    return TaskNode(id=node_id, line=1, column=1, tool=f"t:{node_id}")


def decision(node_id: str) -> DecisionNode:
    return DecisionNode(id=node_id, line=1, column=1, condition="x")


def edge(way: str, outcome: str | None = None) -> Edge:
    start, _, end = way.partition(" ")
    return Edge(from_=start, to=end, type="conditional" if outcome else "sequence", outcome=outcome)


def drawn(nodes: list[Node], edges: list[Edge]) -> list[str]:
    """The tree's lines: depth by leading dots, then the first word."""
    console = Console(width=200, no_color=True)
    with console.capture() as capture:
        console.print(structure_tree(StaticStructure(nodes=tuple(nodes), edges=tuple(edges)), "p"))
    lines = capture.get().splitlines()[1:]
    return [
        "." * ((len(line) - len(line.lstrip("│├└─ "))) // 4) + line.lstrip("│├└─ ").split()[0]
        for line in lines
    ]


@pytest.mark.parametrize(
    ("nodes", "edges", "expected"),
    [
        ([task("n1"), task("n2")], [edge("n1 n2")], [".n1", ".n2"]),
        (
            [task("n1"), decision("d1"), task("n2"), task("n3"), task("n4")],
            [edge("n1 d1"), edge("d1 n2", "true"), edge("d1 n3", "false"), edge("n3 n4")],
            [".n1", ".d1", "..true", "...n2", "..false", "...n3", "...n4"],
        ),
        (
            [decision("d1"), task("n1"), task("n2"), task("n3")],
            [edge("d1 n1", "true"), edge("d1 n2", "false"), edge("n1 n3"), edge("n2 n3")],
            [".d1", "..true", "...n1", "..false", "...n2", ".n3"],
        ),
        (
            [decision("d1"), task("n1"), task("n2")],
            [edge("d1 n1", "true"), edge("n1 n2"), edge("d1 n2", "false")],
            [".d1", "..true", "...n1", ".n2"],
        ),
        (
            [decision("d1"), decision("d2"), task("n1"), task("n2"), task("n3")],
            [
                edge("d1 d2", "true"),
                edge("d2 n1", "true"),
                edge("d2 n2", "false"),
                edge("n1 n3"),
                edge("n2 n3"),
                edge("d1 n3", "false"),
            ],
            [".d1", "..true", "...d2", "....true", ".....n1", "....false", ".....n2", ".n3"],
        ),
        ([task("n1"), task("n2")], [edge("n1 n2"), edge("n2 n1")], [".n1", ".n2"]),
        ([], [], [".no"]),
    ],
    ids=["sequence", "two branches", "meeting", "no else", "nested", "loop", "nothing"],
)
def test_branches_stand_under_their_decision_and_what_follows_after_it(
    nodes: list[Node], edges: list[Edge], expected: list[str]
) -> None:
    assert drawn(nodes, edges) == expected
