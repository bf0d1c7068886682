"""All calls of a program, each with every argument and its origin."""

from collections.abc import Sequence
from uuid import UUID

import pytest
from pydantic import JsonValue

from pml_common.contracts.capability import NestedCapability
from pml_common.contracts.decision import ToolDecision
from pml_common.contracts.structure import (
    Argument,
    ArrayArgument,
    CallNode,
    CapabilityNode,
    DynamicCall,
    LiteralArgument,
    ObjectArgument,
    ParameterArgument,
    ReferenceArgument,
    ResultStep,
    StaticStructure,
    TaskNode,
)
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api import shown_calls
from pml_gateway.domain.api.shown_arguments import ShownArgument
from pml_gateway.domain.api.shown_calls import ShownCall, ShownCalls, shown_calls_of_program
from services.gateway.tests.support.builders import analyzed, workflow

OUTER, INNER = UUID(int=1), UUID(int=2)
SAFE = LiteralArgument(value="/safe")


def task(node_id: str = "n1", *, repeats: bool = False, **arguments: Argument) -> TaskNode:
    return TaskNode(
        id=node_id, line=1, column=3, tool="fs:write", arguments=arguments, repeats=repeats
    )


def calls(called: UUID, node_id: str, *, repeats: bool = False, **given: Argument) -> CallNode:
    return CapabilityNode(
        id=node_id,
        line=2,
        column=5,
        capability_id=str(called),
        name="fs:outer",
        arguments=given,
        repeats=repeats,
    )


def nested(capability_id: UUID, *nodes: CallNode, name: str = "fs:outer") -> NestedCapability:
    return NestedCapability(
        capability_id=capability_id,
        name=name,
        code_hash="c",
        verdict="allow",
        reason="",
        called_as=(),
        node_ids=("n1",),
        nodes=nodes,
    )


def shown(
    *nodes: CallNode,
    args: JsonObject | None = None,
    capabilities: Sequence[NestedCapability] = (),
    dynamic: Sequence[DynamicCall] = (),
    whole: bool = False,
) -> ShownCalls:
    ask = ToolDecision(
        tool="fs:write",
        verdict="ask",
        reason="",
        definition_hash="h",
        node_ids=tuple(node.id for node in nodes),
    )
    analysis = analyzed(workflow(), "ask")
    analysis = analysis.model_copy(
        update={
            "structure": StaticStructure(nodes=nodes),
            "capabilities": tuple(capabilities),
            "dynamic_calls": tuple(dynamic),
            "decision": analysis.decision.model_copy(update={"tools": (ask,)}),
        }
    )
    return shown_calls_of_program(analysis, args or {}, whole=whole)


def only(argument: Argument, **args: JsonValue) -> ShownArgument:
    """Return the only argument of the only call, as shown."""
    (call,) = shown(task(path=argument), args=args).calls
    (argument_shown,) = call.arguments
    return argument_shown


def parameter(*path: ResultStep, default: tuple[JsonValue, ...] = ()) -> ParameterArgument:
    return ParameterArgument(parameter_name="path", path=path, default=default)


def result(node_id: str, *path: ResultStep) -> ReferenceArgument:
    return ReferenceArgument(expression="r", node_id=node_id, path=path)


ONE = {
    "a literal": (SAFE, "literal", "literal", '"/safe"'),
    "the caller's": (parameter("path"), "caller", "the caller's path", '"/given"'),
    "the caller's, left out": (
        parameter("other"),
        "absent",
        "the caller's path, which is left out",
        None,
    ),
    "a default": (parameter("other", default=(7,)), "caller", "the caller's path", "7"),
    "one of": (parameter("list", None), "either", "one of the caller's path", "[1, 2]"),
    "of an empty list": (parameter("none", None), "either", "one of the caller's path", "[]"),
    "a result": (result("n9", "a b", 0), "result", "from some result of n9", 'n9["a b"][0]'),
    "a whole result": (result("n9"), "result", "from some result of n9", "n9"),
    "an element": (
        result("n9", "files", None, "name"),
        "result",
        "an element of n9.files",
        "n9.files[…].name",
    ),
    "computed": (
        ReferenceArgument(expression="a + b"),
        "computed",
        "computed when it runs",
        "a + b",
    ),
    "computed of a parameter": (
        ParameterArgument(parameter_name="path"),
        "computed",
        "computed when it runs",
        "path",
    ),
}


@pytest.mark.parametrize(("argument", "kind", "words", "text"), ONE.values(), ids=ONE)
def test_an_argument_is_shown_with_its_source(
    argument: Argument, kind: str, words: str, text: str | None
) -> None:
    listed = only(argument, path="/given", list=[1, 2], none=[])
    assert (listed.name, listed.kind, listed.words, listed.text) == ("path", kind, words, text)
    assert listed.is_whole


def test_parts_of_objects_and_lists_are_shown_one_by_one() -> None:
    made = ObjectArgument(fields={"a": SAFE, "b": ArrayArgument(items=(parameter("path"), SAFE))})
    listed = only(made, path="/given")
    assert (listed.kind, [part.name for part in listed.parts]) == ("object", ["a", "b"])
    items = listed.parts[1]
    assert items.kind == "list"
    assert [(part.name, part.kind) for part in items.parts] == [("0", "caller"), ("1", "literal")]


def test_a_spread_is_shown_with_the_keys_that_it_may_set() -> None:
    some = ReferenceArgument(expression="opts", node_id="n0", path=("o",), keys=("path", "mode"))
    (call,) = shown(task_with({"path": SAFE, "...opts": some})).calls
    path, spread = call.arguments
    assert (path.kind, [part.kind for part in path.parts]) == ("either", ["literal", "result"])
    assert (spread.name, spread.words) == ("...opts", "may set path, mode")
    assert spread.parts[0].text == "n0.o"
    anything = ReferenceArgument(expression="opts()")
    (call,) = shown(task_with({"...opts()": anything})).calls
    assert call.arguments[0].words == "may set any key"
    assert call.arguments[0].parts[0].kind == "computed"
    nothing = some.model_copy(update={"keys": ()})
    (call,) = shown(task_with({"...opts": nothing})).calls
    assert call.arguments[0].words == "may set nothing"


def task_with(arguments: dict[str, Argument]) -> TaskNode:
    return task().model_copy(update={"arguments": arguments})


def test_an_alternative_may_be_absent() -> None:
    inside = ObjectArgument(fields={"x": parameter("list", None, "path")})
    listed = only(inside, list=[{"path": "/a"}, {}]).parts[0]
    assert listed.kind == "either"
    assert [(part.kind, part.text) for part in listed.parts] == [
        ("caller", '"/a"'),
        ("absent", None),
    ]


def test_every_call_site_is_listed() -> None:
    nodes = [task(f"n{n}", path=LiteralArgument(value=f"/{n}")) for n in range(50)]
    listed = shown(*nodes)
    assert [call.arguments[0].text for call in listed.calls] == [f'"/{n}"' for n in range(50)]
    assert {call.verdict for call in listed.calls} == {"ask"}
    assert listed.is_whole


def test_calls_inside_capabilities_are_shown_with_the_arguments_the_program_passes() -> None:
    inner = nested(INNER, task(path=parameter("to"), repeats=True), name="fs:inner")
    outer = nested(OUTER, calls(INNER, "n2", to=parameter("path")), task("n3"))
    listed = shown(
        calls(OUTER, "n1", path=parameter("where")),
        args={"where": "/x"},
        capabilities=(outer, inner),
    )
    assert [(call.node_id, call.within, call.how_often) for call in listed.calls] == [
        ("n1", None, "once"),
        ("n1/n2", "fs:outer", "once"),
        ("n1/n2/n1", "fs:inner", "any number of times"),
        ("n1/n3", "fs:outer", "once"),
    ]
    write = listed.calls[2].arguments[0]
    assert (write.kind, write.text, write.marks) == ("caller", '"/x"', ("absolute path",))
    assert listed.calls[2].verdict == "ask"


def test_a_loop_around_a_capability_repeats_its_calls() -> None:
    listed = shown(calls(OUTER, "n1", repeats=True), capabilities=(nested(OUTER, task()),))
    assert listed.calls[1].how_often == "any number of times"


def test_capabilities_that_call_each_other_are_followed_to_the_maximum_depth() -> None:
    again = nested(OUTER, calls(OUTER, "n1"), task("n2"))
    listed = shown(calls(OUTER, "n1"), capabilities=(again,))
    assert max(call.node_id.count("/") for call in listed.calls) == 3
    unknown = CapabilityNode(id="n1", line=1, column=1, name="fs:gone")
    assert [call.tool for call in shown(unknown).calls] == ["cap:fs:gone"]


def test_long_literals_are_cut_unless_requested_whole() -> None:
    long = "/x" * 2_000
    deep: list[JsonValue] = ["y" * 2_000]
    node = task(
        path=LiteralArgument(value=long),
        more=ObjectArgument(
            fields={"a": ArrayArgument(items=(LiteralArgument(value=deep), parameter("p")))}
        ),
    )
    brief, whole = shown(node), shown(node, whole=True)
    assert (brief.is_whole, whole.is_whole) == (False, True)
    assert whole.calls[0].arguments[0].text == f'"{long}"'
    assert whole.calls[0].arguments[1].parts[0].parts[0].text == f'["{deep[0]}"]'
    assert "4,002 characters" in (brief.calls[0].arguments[0].text or "")


def test_different_calls_have_different_digests() -> None:
    long = "x" * 5_000
    listed = [
        shown(task(path=SAFE)),
        shown(task(path=LiteralArgument(value="/evil"))),
        shown(task(path=SAFE), task("n2", path=SAFE)),
        shown(task(path=SAFE, mode=SAFE)),
        shown(task(path=SAFE, repeats=True)),
        shown(task(path=parameter("path")), args={"path": "/safe"}),
        shown(task(path=LiteralArgument(value=f"{long}a{long}"))),
        shown(task(path=LiteralArgument(value=f"{long}b{long}"))),
        shown(task(path=SAFE), dynamic=[DynamicCall(expression="x", line=1, column=1)]),
    ]
    assert len({each.digest() for each in listed}) == len(listed)
    assert listed[0].digest() == shown(task(path=SAFE)).digest()


@pytest.mark.parametrize("limit", ["MAX_CALLS", "MAX_ARGUMENTS"])
def test_a_listing_over_the_limits_is_marked_incomplete(
    monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(shown_calls, limit, 3)
    nodes = [task(f"n{n}", path=SAFE) for n in range(9)]
    listed = shown(*nodes)
    assert len(listed.calls) < 9
    assert (listed.is_all, listed.is_whole) == (False, False)
    assert shown(*nodes[:3]).is_all


def test_a_misleading_name_is_marked() -> None:
    (call,) = shown(task_with({"p\u0430th": SAFE, "a\u200b": SAFE})).calls
    first, second = call.arguments
    assert "reads like other characters" in first.marks[-1]
    assert (second.name, "invisible characters" in second.marks[-1]) == ("a\\u200b", True)


def test_a_call_is_shown_with_its_place() -> None:
    (call,) = shown(task()).calls
    assert isinstance(call, ShownCall)
    assert (call.line, call.column, call.tool, call.within) == (1, 3, "fs:write", None)
