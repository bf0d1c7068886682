"""Structures in Mermaid and Graphviz: their content, and robustness against any text."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.pml_common.tests.support.builders import structure
from pml_common.contracts.decision import Decision, ToolDecision
from pml_common.contracts.structure import (
    Argument,
    ArrayArgument,
    CapabilityNode,
    DecisionNode,
    DynamicCall,
    Edge,
    FieldMapping,
    ForkNode,
    JoinNode,
    LiteralArgument,
    LoopNode,
    ObjectArgument,
    ParameterArgument,
    ReferenceArgument,
    StaticStructure,
    TaskNode,
)
from pml_common.drawing.dot import dot
from pml_common.drawing.mermaid import mermaid
from pml_common.drawing.picture import picture

AT: Any = {"line": 1, "column": 1}
HOSTILE = [
    '"]; x -->|"y"| z',
    "https://x.y/z?a=b&c=d www.x.y a@b.c",
    "`code` **b** *i* _i_ __b__ ~~s~~ a_b",
    "<script>&amp; #35; $$x$$ %%{init: {}}%%",
    r"a\nb\N\G\"",
    "style x fill:#f00; classDef y z:#a;",
    "fa:fa-trash ::: {curly} [sq] |pipe|",
    "- 1. list",
    "line\r\n\tbreak\x00\x1b[31m\u202egnp.exe",
    "日本語 é 🙂",
    "end",
    "",
    "x" * 10_000,
]


def everything(text: str) -> tuple[StaticStructure, list[DynamicCall], Decision]:
    """Build a structure of every kind of node and edge, with one text wherever text is allowed."""
    value = LiteralArgument(value=text)
    given = ArrayArgument(items=(ObjectArgument(fields={text: value}),))
    nodes = (
        TaskNode(id="n1", **AT, tool=text, arguments={text: value, "given": given}),
        CapabilityNode(
            id="n2", **AT, name=text, arguments={"x": ParameterArgument(parameter_name=text)}
        ),
        DecisionNode(id="d1", **AT, condition=text),
        LoopNode(id="l1", **AT, kind=text, over=text),
        ForkNode(id="f1", **AT, over=text),
        JoinNode(id="j1", **AT),
        TaskNode(id=f"{text}?", **AT, tool="t:t"),
    )
    mapping = FieldMapping(from_field=text, to_field=text, type_compatible=False)
    edges = (
        Edge(from_="n1", to="d1", type="conditional", outcome=text),
        Edge(from_="l1", to="n1", type="loop_body"),
        Edge(from_="n1", to="n2", type="provides", field_mapping=(mapping,)),
        Edge(from_="n2", to=f"{text}?", type="contains"),
        Edge(from_="f1", to="j1", type="sequence"),
    )
    dynamic = [DynamicCall(expression=text, **AT)]
    tool = ToolDecision(tool="t", verdict="deny", reason="", definition_hash="", node_ids=("n1",))
    return (
        StaticStructure(nodes=nodes, edges=edges),
        dynamic,
        Decision(verdict="deny", tools=(tool,)),
    )


LABEL = r"\"(?:[^\"#<>&\\`$%*~;\n]|#\d+;|<br/>)*\""
BOX = rf"\[{LABEL}\]|\[\[{LABEL}\]\]|\({LABEL}\)|\{{{LABEL}\}}|>{LABEL}\]"
FRAME = rf"\{{\{{{LABEL}\}}\}}|\[/{LABEL}\\\]|\[\\{LABEL}/\]"
MERMAID = [
    r"flowchart TD",
    rf"  \w+(?:{BOX}|{FRAME})",
    rf"  \w+ (?:-->|==>|-\.->|--o)(?:\|{LABEL}\|)? \w+",
    r"  classDef \w+ [\w#:,\- ]+",
    r"  class [\w,]+ \w+",
]
QUOTED = r"\"(?:[^\"\\\n&]|\\[n\\\"]|&amp;)*\""
ATTRIBUTES = rf" \[\w+=(?:\w+|{QUOTED})(?: \w+=(?:\w+|{QUOTED}))*\]"
DOT = [
    r"digraph structure \{",
    rf"  charset={QUOTED};",
    rf"  \w+(?: -> \w+)?(?:{ATTRIBUTES})?;",
    r"\}",
]


def shown_in_mermaid(text: str) -> list[str]:
    """Return the lines of the labels of a diagram's boxes, as viewers show them."""
    labels = re.findall(rf"^  \w+[^\w ]+({LABEL})[^\w ]+$", text, re.MULTILINE)
    lines = [line for label in labels for line in label[1:-1].split("<br/>")]
    plain = [re.sub(r"#(\d+);", lambda found: chr(int(found[1])), line) for line in lines]
    return [line.replace("\u200b", "") for line in plain]


def shown_in_dot(text: str) -> list[str]:
    """Return the lines of the labels of a graph's boxes, as Graphviz shows them."""
    labels = re.findall(rf"^  \w+ \[label=({QUOTED})", text, re.MULTILINE)
    plain = [
        re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], label[1:-1])
        for label in labels
    ]
    return [line.replace("&amp;", "&") for label in plain for line in label.split("\n")]


ALIKE = str.maketrans({"`": "\u02cb", "*": "\u2217", "~": "\u223c"})


def check(text: str) -> None:
    drawn, dynamic, decision = everything(text)
    diagram = mermaid(drawn, dynamic=dynamic, decision=decision)
    graph = dot(drawn, dynamic=dynamic, decision=decision)
    for language, drawing in ((MERMAID, diagram), (DOT, graph)):
        for line in drawing.splitlines():
            assert any(re.fullmatch(rule, line) for rule in language), line
    lines = [line for box in picture(drawn, dynamic, decision).boxes for line in box.lines]
    assert shown_in_mermaid(diagram) == [line.translate(ALIKE) for line in lines]
    assert shown_in_dot(graph) == lines


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:12])
def test_no_text_breaks_a_drawing(text: str) -> None:
    check(text)


@given(st.text(max_size=200) | st.text('\\"#&$`_<>n;%', max_size=20))
def test_any_text_is_shown_unchanged(text: str) -> None:
    check(text)


def test_a_program_in_mermaid() -> None:
    drawn = structure("n1 d1 n2", "n1>d1 d1>n2:true n1~n2")
    dynamic = [DynamicCall(expression="mcp[s].t()", line=3, column=1)]
    verdicts = {"n1": "allow", "n2": "ask"}
    tools = tuple(
        ToolDecision.model_validate(
            {
                "tool": "t:t",
                "verdict": verdict,
                "reason": "",
                "definition_hash": "",
                "node_ids": [one],
            }
        )
        for one, verdict in verdicts.items()
    )
    decision = Decision(verdict="ask", tools=tools)
    assert mermaid(drawn, dynamic=dynamic, decision=decision).splitlines() == [
        "flowchart TD",
        '  n1["n1 t:t"]',
        '  d1{"d1 if x"}',
        '  n2["n2 t:t"]',
        '  u1>"line 3: known when it runs<br/>mcp[s].t()"]',
        "  n1 --> d1",
        '  d1 -->|"true"| n2',
        "  n1 -.-> n2",
        "  classDef allow stroke:#1a7f37,stroke-width:2px",
        "  class n1 allow",
        "  classDef ask stroke:#bf8700,stroke-width:3px",
        "  class n2,u1 ask",
        "  classDef unknown stroke-dasharray:6 4",
        "  class u1 unknown",
    ]


def test_without_a_decision_nothing_is_coloured() -> None:
    dynamic = [DynamicCall(expression="f()", **AT)]
    assert "stroke:" not in mermaid(structure("n1"), dynamic=dynamic)
    assert "color=" not in dot(structure("n1"), dynamic=dynamic)


def test_an_empty_structure_is_drawn_as_one_box() -> None:
    assert mermaid(StaticStructure()) == 'flowchart TD\n  none("no tool is called")\n'
    assert "no tool is called" in dot(StaticStructure())


def test_each_kind_of_node_has_its_caption() -> None:
    fork = ForkNode(id="f1", **AT, kind="allSettled", over="urls")
    join = JoinNode(id="j1", **AT)
    other = JoinNode(id="j2", **AT)
    switch = DecisionNode(id="d1", **AT, condition="kind")
    attempt = DecisionNode(id="d2", **AT, condition="try")
    loop = LoopNode(id="l1", **AT, kind="for-of", over="names")
    nodes = (fork, join, other, switch, attempt, loop)
    edges = (Edge(from_="d1", to="l1", type="conditional", outcome="default"),)
    seen = picture(StaticStructure(nodes=nodes, edges=edges), [], None)
    assert [box.lines[0] for box in seen.boxes] == [
        "f1 side by side: Promise.allSettled over urls",
        "j1 when each has ended",
        "j2 when all are done",
        "d1 switch kind",
        "d2 try",
        "l1 for-of names",
    ]


def test_arguments_show_their_source_and_are_cut() -> None:
    arguments: dict[str, Argument] = {
        "a": LiteralArgument(value="<path>"),
        "b": ParameterArgument(parameter_name="path"),
        "c": ReferenceArgument(expression="file.content", node_id="n1"),
        "d": ReferenceArgument(expression="file.content"),
        "e": ArrayArgument(items=(LiteralArgument(value=1), ObjectArgument(fields={}))),
        "f": LiteralArgument(value=None),
    }
    seen = picture(
        StaticStructure(nodes=(TaskNode(id="n1", **AT, tool="t:t", arguments=arguments),)), [], None
    )
    assert seen.boxes[0].lines[1:] == (
        'a: "<path>"',
        "b: <path>",
        "c: file.content ← n1",
        "d: file.content",
        "e: [1, {}]",
        "and 1 more",
    )


def test_arguments_may_nest_beyond_what_is_shown() -> None:
    nested = ArrayArgument(items=())
    for _ in range(50):
        nested = ArrayArgument(items=(nested,))
    task = TaskNode(id="n1", **AT, tool="t:t", arguments={"x": nested})
    assert picture(StaticStructure(nodes=(task,)), [], None).boxes[0].lines[1] == "x: [[[[[…]]]]]"


def test_fields_that_feed_each_other_are_named_and_counted() -> None:
    mappings = tuple(
        FieldMapping(from_field=f"f{number}", to_field="t", type_compatible=number > 0)
        for number in range(5)
    )
    edge = Edge(from_="n1", to="n1", type="provides", field_mapping=mappings)
    seen = picture(StaticStructure(nodes=structure("n1").nodes, edges=(edge,)), [], None)
    assert seen.arrows[0].label == "f0 → t (types differ), f1 → t, f2 → t, 2 more"
