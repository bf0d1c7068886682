"""A structure as a tree: readable without colour, in 80 columns, for any program."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from libs.pml_common.tests.support.builders import structure
from pml_cli.render.structure import structure_tree
from pml_common.contracts.decision import Decision, ToolDecision, Verdict
from pml_common.contracts.structure import (
    CapabilityNode,
    DecisionNode,
    DynamicCall,
    Edge,
    FieldMapping,
    LiteralArgument,
    LoopNode,
    ParameterArgument,
    Position,
    ReferenceArgument,
    StaticStructure,
    TaskNode,
)

AT: Any = {"line": 1, "column": 1}
DYNAMIC = DynamicCall(expression="mcp[name].send()", line=9, column=1)


def drawn(
    drawn: StaticStructure,
    decision: Decision | None = None,
    dynamic: tuple[DynamicCall, ...] = (),
    width: int = 80,
) -> list[str]:
    """The tree's lines below its title."""
    console = Console(width=width, no_color=True)
    with console.capture() as capture:
        console.print(structure_tree(drawn, "p", decision, dynamic))
    return capture.get().splitlines()[1:]


def decided(**verdicts: Verdict) -> Decision:
    """A decision on nodes by their ids."""
    tools = tuple(
        ToolDecision(tool="t", verdict=verdict, reason="", definition_hash="", node_ids=(node_id,))
        for node_id, verdict in verdicts.items()
    )
    return Decision(verdict="ask", tools=tools)


@pytest.mark.parametrize(
    ("nodes", "ways", "expected"),
    [
        ("n1 n2", "n1>n2", ["├─ n1 t:t()  line 1", "└─ n2 t:t()  line 1"]),
        (
            "d1 n1 n2 n3",
            "d1>n1:true d1>n2:false n1>n3 n2>n3",
            [
                "├─ d1 if x  line 1",
                "│  ├─ true",
                "│  │  └─ n1 t:t()  line 1",
                "│  └─ false",
                "│     └─ n2 t:t()  line 1",
                "└─ n3 t:t()  line 1",
            ],
        ),
        (
            "d1 n1 d2 n2 n3",
            "d1>n1:true d1>d2:false d2>n2:true n1>n3 n2>n3",
            [
                "├─ d1 if x  line 1",
                "│  ├─ true",
                "│  │  └─ n1 t:t()  line 1",
                "│  └─ false → d2 if x  line 1",
                "│     ├─ true",
                "│     │  └─ n2 t:t()  line 1",
                "│     └─ false → ends here",
                "└─ n3 t:t()  line 1",
            ],
        ),
        (
            "d1 n1 n2 n3",
            "d1>n1:false n1>n3",
            [
                "├─ d1 if x  line 1, on only if false",
                "├─ n1 t:t()  line 1",
                "├─ n3 t:t()  line 1, ends here",
                "└─ n2 t:t()  line 1",
            ],
        ),
        (
            "l1 d1 n1 n2",
            "l1>d1* d1>n2:true d1>n1:false n1>l1 l1>n2",
            [
                "├─ l1 for-of xs  line 1",
                "│  └─ d1 if x  line 1",
                "│     ├─ true → on to n2",
                "│     └─ false",
                "│        └─ n1 t:t()  line 1",
                "└─ n2 t:t()  line 1",
            ],
        ),
        (
            "n0 l1=while n1 n2",
            "n0>n1 n1>l1 l1>n2* n2>n1",
            [
                "├─ n0 t:t()  line 1",
                "├─ n1 t:t()  line 1",
                "└─ l1 while xs  line 1",
                "   ├─ n2 t:t()  line 1",
                "   └─ back to n1",
            ],
        ),
        ("", "", ["no tool calls"]),
    ],
    ids=["order", "branches", "else if", "guards and ends", "break", "loop head", "nothing"],
)
def test_branches_are_nested_under_their_decision_and_followers_come_after_it(
    nodes: str, ways: str, expected: list[str]
) -> None:
    assert drawn(structure(nodes, ways)) == expected


def test_a_call_shows_its_verdict_arguments_and_invocations() -> None:
    read = TaskNode(
        id="n1",
        **AT,
        tool="fs:read",
        arguments={"path": ParameterArgument(parameter_name="path")},
        via=(Position(line=6, column=1), Position(line=9, column=3)),
    )
    long = "no more than what fits, however much there is to be said of it, and more"
    write = TaskNode(
        id="n2",
        **AT,
        tool="fs:write",
        arguments={
            "path": LiteralArgument(value="a.txt"),
            "content": ReferenceArgument(expression="file.content", node_id="n1"),
            "comment": LiteralArgument(value=long),
        },
    )
    other = CapabilityNode(id="n3", **AT, name="fs:clean")
    mapping = FieldMapping(from_field="size", to_field="path", type_compatible=False)
    edges = (
        Edge(from_="n1", to="n2", type="sequence"),
        Edge(from_="n2", to="n3", type="sequence"),
        Edge(from_="n1", to="n2", type="provides", field_mapping=(mapping,)),
    )
    whole = StaticStructure(nodes=(read, write, other), edges=edges)
    assert drawn(whole, decided(n1="allow", n2="ask", n3="deny"), (DYNAMIC,)) == [
        "├─ ✓ n1 fs:read(path: <path>)  line 1 via line 6 → 9",
        "├─ ? n2 fs:write  line 1",
        '│    path: "a.txt"',
        "│    content: file.content ← n1",
        '│    comment: "no more than what fits, however much t…',
        "│    types differ: n1's size → path",
        "├─ ✗ n3 capability fs:clean()  line 1",
        "└─ ? mcp[name].send()  line 9, known when it runs",
    ]
    assert drawn(whole, dynamic=(DYNAMIC,))[-1] == (
        "└─ mcp[name].send()  line 9, known when it runs"
    )


def test_outer_levels_are_omitted_for_deep_branches() -> None:
    nodes = [f"l{number}" for number in range(60)]
    ways = [f"{one}>{two}*" for one, two in pairwise(nodes)]
    lines = drawn(structure(" ".join(nodes), " ".join(ways)))
    assert lines[0] == "└─ l0 for-of xs  line 1"
    assert lines[-1] == f"⋯  {' ' * 33}└─ l59 for-of xs  line 1"


@given(st.text(), st.integers(20, 120))
def test_no_text_makes_a_line_too_wide_or_two(text: str, width: int) -> None:
    nodes = (
        TaskNode(id="n1", **AT, tool=text, arguments={text: LiteralArgument(value=text)}),
        DecisionNode(id="d1", **AT, condition=text),
        LoopNode(id="l1", **AT, kind=text, over=text),
        CapabilityNode(id=f"{text}!", **AT, name=text),
    )
    edges = (
        Edge(from_="n1", to="d1", type="sequence"),
        Edge(from_="d1", to="l1", type="conditional", outcome=text),
        Edge(from_="l1", to=f"{text}!", type="loop_body"),
    )
    lines = drawn(
        StaticStructure(nodes=nodes, edges=edges),
        decided(n1="deny"),
        (DynamicCall(expression=text, **AT),),
        width,
    )
    assert 5 <= len(lines) <= 8  # `false` as a text joins the branch that is not taken
    for line in lines:
        assert line.isprintable()
        assert cell_len(line) <= width
