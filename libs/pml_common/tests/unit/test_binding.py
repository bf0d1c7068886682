"""Calls compared with a grant; long on purpose: every kind of argument in one place."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID

import pytest
from pydantic import JsonValue

from pml_common.binding.canonical import canonical, sha256_of, sha256_of_text
from pml_common.binding.fit import ActualCall, Binding
from pml_common.binding.granting import granted_nodes, known_arguments
from pml_common.contracts.capability import NestedCapability
from pml_common.contracts.decision import ArgumentRule, PolicyRule
from pml_common.contracts.grant import Grant, GrantedCall, GrantedRest
from pml_common.contracts.scope import Scope
from pml_common.contracts.structure import (
    Argument,
    ArrayArgument,
    CapabilityNode,
    LiteralArgument,
    ObjectArgument,
    ParameterArgument,
    ReferenceArgument,
    ResultStep,
    TaskNode,
)
from pml_common.contracts.tool import JsonObject, args_hash

WRITE = "t:write"
SAFE = LiteralArgument(value="/safe")
CAPABILITY, INNER = UUID(int=7), UUID(int=8)


def task(node_id: str = "n1", *, repeats: bool = True, **arguments: Argument) -> TaskNode:
    return shown(arguments, node_id, repeats=repeats)


def shown(arguments: dict[str, Argument], node_id: str = "n1", *, repeats: bool = True) -> TaskNode:
    return TaskNode(id=node_id, line=1, column=1, tool=WRITE, arguments=arguments, repeats=repeats)


def capability(
    called: UUID, node_id: str = "n1", *, repeats: bool = True, **arguments: Argument
) -> CapabilityNode:
    return CapabilityNode(
        id=node_id,
        line=1,
        column=1,
        capability_id=str(called),
        name="a:b",
        arguments=arguments,
        repeats=repeats,
    )


def nested(capability_id: UUID, *nodes: TaskNode | CapabilityNode) -> NestedCapability:
    return NestedCapability(
        capability_id=capability_id,
        name="a:b",
        code_hash="c",
        verdict="allow",
        reason="",
        called_as=(),
        node_ids=(),
        nodes=nodes,
    )


def parameter(*path: ResultStep, default: tuple[JsonValue, ...] = ()) -> ParameterArgument:
    return ParameterArgument(parameter_name=str(path), path=path, default=default)


def result(node_id: str, *path: ResultStep) -> ReferenceArgument:
    return ReferenceArgument(expression="r", node_id=node_id, path=path)


COMPUTED = ReferenceArgument(expression="x + y")


class Approved:
    """One approved program and the results of its calls."""

    def __init__(
        self,
        *nodes: TaskNode | CapabilityNode,
        args: JsonObject | None = None,
        nested: Sequence[NestedCapability] = (),
        results: Mapping[str, Sequence[JsonValue]] | None = None,
        **more: object,
    ) -> None:
        self.results = results or {}
        grant = Grant(
            scope=Scope(org="acme", project="webapp"),
            workflow_id=UUID(int=1),
            code_hash="c",
            text_hash="t",
            args_hash="a",
            policy_revision="p",
            tools={WRITE: "h", "t:read": "r"},
            bound=(WRITE,),
            nodes=granted_nodes(nodes, nested, {WRITE}),
            expires_at=datetime.now(UTC),
        ).model_copy(update=more)
        self.binding = Binding(Grant.model_validate_json(grant.model_dump_json()), args or {})

    def mismatch(
        self, args: JsonObject, node: str = "n1", occurrence: int = 0, tool: str = WRITE
    ) -> str | None:
        call = ActualCall(node, occurrence, tool, args, args_hash(args))
        return self.binding.mismatch(call, lambda node_id: self.results.get(node_id, ()))


def test_a_literal_must_be_equal() -> None:
    approved = Approved(task(path=SAFE))
    assert approved.mismatch({"path": "/safe"}) is None
    assert approved.mismatch({"path": "/evil"}) == (
        "t:write is called with other arguments: path was to be another value"
    )
    assert approved.mismatch({}) is not None


def test_a_key_that_was_not_shown_is_refused() -> None:
    approved = Approved(task(path=SAFE))
    assert "mode was not to be given" in (approved.mismatch({"path": "/safe", "mode": 7}) or "")


def test_true_is_not_one_and_one_is_one_point_zero() -> None:
    approved = Approved(task(n=LiteralArgument(value=1), b=LiteralArgument(value=True)))
    assert approved.mismatch({"n": 1.0, "b": True}) is None
    assert approved.mismatch({"n": True, "b": True}) is not None
    assert approved.mismatch({"n": 1, "b": 1}) is not None


def test_a_long_literal_is_replaced_by_its_digest() -> None:
    text = "x" * 5000
    where: Argument = ObjectArgument(
        fields={"a": ArrayArgument(items=(LiteralArgument(value=text), COMPUTED))}
    )
    approved = Approved(task(text=LiteralArgument(value=text), where=where))
    assert approved.mismatch({"text": text, "where": {"a": [text, 3]}}) is None
    assert approved.mismatch({"text": text + "y", "where": {"a": [text, 3]}}) is not None
    assert approved.mismatch({"text": text, "where": {"a": ["", 3]}}) is not None
    assert approved.mismatch({"text": "\ud800", "where": {"a": [text, 3]}}) is not None
    assert approved.mismatch({"where": {"a": [text, 3]}}) is not None


def test_a_parameter_is_the_callers_value() -> None:
    args: JsonObject = {"to": {"path": "/a"}, "rows": ["x", "y"], "0": "zero"}
    approved = Approved(
        task(
            path=parameter("to", "path"),
            row=parameter("rows", 1),
            any=parameter("rows", None),
            zero=parameter(0),
        ),
        args=args,
    )
    fits: JsonObject = {"path": "/a", "row": "y", "any": "x", "zero": "zero"}
    assert approved.mismatch(fits) is None
    assert "path was to be the caller's" in (approved.mismatch({**fits, "path": "/b"}) or "")
    assert approved.mismatch({**fits, "row": "x"}) is not None
    assert approved.mismatch({**fits, "any": "z"}) is not None


def test_a_parameter_that_the_caller_does_not_give_must_be_absent() -> None:
    approved = Approved(task(path=parameter("path"), row=parameter("rows", 3)), args={"rows": []})
    assert approved.mismatch({}) is None
    assert approved.mismatch({"path": None}) is not None


DEFAULTED: list[tuple[JsonObject, list[JsonValue], list[JsonValue]]] = [
    ({}, ["/def"], [None, "/x"]),
    ({"p": None}, ["/def", None], ["/x"]),
    ({"p": ""}, ["/def", ""], ["/x"]),
    ({"p": "/x"}, ["/x"], ["/def"]),
    ({"p": {}}, [{}], ["/def"]),
]


@pytest.mark.parametrize(("args", "fitting", "others"), DEFAULTED)
def test_a_default_stands_in_for_what_the_caller_does_not_give(
    args: JsonObject, fitting: list[JsonValue], others: list[JsonValue]
) -> None:
    approved = Approved(task(path=parameter("p", default=("/def",))), args=args)
    assert [approved.mismatch({"path": value}) for value in fitting] == [None] * len(fitting)
    assert None not in [approved.mismatch({"path": value}) for value in others]


def test_a_reference_is_that_part_of_some_earlier_result() -> None:
    results: dict[str, Sequence[JsonValue]] = {
        "n1": [{"files": [{"path": "/a"}, {"path": "/b"}]}, {"files": [{"path": "/c"}]}, "text"]
    }
    first = Approved(task("n2", path=result("n1", "files", 0, "path")), results=results)
    assert [first.mismatch({"path": p}, "n2") is None for p in ("/a", "/b", "/c")] == [
        True,
        False,
        True,
    ]
    each = Approved(task("n2", path=result("n1", "files", None, "path")), results=results)
    assert [each.mismatch({"path": p}, "n2") is None for p in ("/a", "/b", "/c", "/d")] == [
        *[True] * 3,
        False,
    ]
    assert "from a result of n1" in (each.mismatch({"path": "/d"}, "n2") or "")


def test_before_any_result_no_reference_fits() -> None:
    approved = Approved(task("n2", path=result("n1")))
    assert approved.mismatch({"path": None}, "n2") is not None
    call = ActualCall("n2", 0, WRITE, {"path": None}, "")
    assert approved.binding.mismatch(call, lambda _: (), beside_mocks=True) is None
    assert approved.binding.mismatch(call, lambda _: ("x",), beside_mocks=True) is not None


def reading(node_id: str, repeats: bool = True, **arguments: Argument) -> TaskNode:
    return TaskNode(
        id=node_id, line=1, column=1, tool="t:read", arguments=arguments, repeats=repeats
    )


def test_a_call_whose_result_is_referred_to_must_be_as_it_was_shown() -> None:
    inside = ObjectArgument(fields={"a": ArrayArgument(items=(result("n2", "x"), COMPUTED))})
    approved = Approved(
        reading("n1", repeats=False, path=SAFE),
        reading("n2", path=result("n1", "path"), more=result("gone")),
        reading("n3", path=SAFE),
        task("n4", where=inside),
        results={"n1": [{"path": "/r"}]},
    )
    assert approved.mismatch({"path": "/safe"}, "n1", tool="t:read") is None
    assert "path was to be another" in (
        approved.mismatch({"path": "/evil"}, "n1", 0, "t:read") or ""
    )
    assert "made once" in (approved.mismatch({"path": "/safe"}, "n1", 1, "t:read") or "")
    assert approved.mismatch({"path": "/evil"}, "n2", tool="t:read") is not None
    assert approved.mismatch({"path": "/evil"}, "n3", tool="t:read") is None
    assert "was not seen" in (approved.mismatch({"path": "/safe"}, "n1") or "")
    read = ActualCall("n1", 0, "t:read", {}, "")
    assert approved.binding.is_source(read)
    assert not approved.binding.is_source(ActualCall("n4", 0, WRITE, {}, ""))
    assert not approved.binding.is_source(ActualCall("n3", 0, "t:read", {}, ""))


def test_a_standing_rule_does_not_change_what_is_referred_to() -> None:
    anything = PolicyRule(pattern="t:write", verdict="allow")
    approved = Approved(task(path=SAFE), task("n2", path=result("n1")), standing=(anything,))
    assert approved.mismatch({"path": "/evil"}) is not None
    assert approved.mismatch({"path": "/evil"}, "n2") is None


def test_parts_of_a_text_are_its_characters() -> None:
    args: JsonObject = {"t": "a\U0001f600"}
    approved = Approved(
        task(one=parameter("t", 0), half=parameter("t", 1), each=parameter("t", None)), args=args
    )
    assert approved.mismatch({"one": "a", "half": "\ud83d", "each": "\U0001f600"}) is None
    assert approved.mismatch({"one": "b", "half": "\ud83d", "each": "a"}) is not None
    spread = Approved(shown({"v": SAFE, "...args.t": parameter("t")}), args={"t": "F"})
    assert spread.mismatch({"v": "/safe", "0": "F"}) is None
    assert spread.mismatch({"v": "/safe", "0": "G"}) is not None


def test_an_absent_part_of_a_result_is_absent_and_null_in_a_list() -> None:
    approved = Approved(
        task("n2", path=result("n1", "gone"), all=ArrayArgument(items=(result("n1", "gone"),))),
        results={"n1": [{}]},
    )
    assert approved.mismatch({"all": [None]}, "n2") is None
    assert approved.mismatch({"all": []}, "n2") is not None
    assert approved.mismatch({"all": None}, "n2") is not None


def test_computed_arguments_may_be_anything_unless_the_policy_parks_them() -> None:
    where = ObjectArgument(fields={"a": ArrayArgument(items=(COMPUTED, SAFE))})
    approved = Approved(task(path=COMPUTED, where=where))
    call: JsonObject = {"path": [1], "where": {"a": [None, "/safe"]}}
    assert approved.mismatch(call) is None
    assert approved.mismatch({**call, "where": {"a": [None, "/evil"]}}) is not None
    assert approved.mismatch({**call, "where": [None]}) is not None
    parks = Approved(task(path=COMPUTED, where=where), computed_parks=True)
    assert "path is computed" in (parks.mismatch(call) or "")
    assert "where is computed" in (parks.mismatch({"where": call["where"]}) or "")
    known = Approved(task(path=SAFE, a=ArrayArgument(items=())), computed_parks=True)
    assert known.mismatch({"path": "/safe", "a": []}) is None


def test_a_spread_sets_the_keys_that_were_shown() -> None:
    spread = ReferenceArgument(expression="opts", keys=("mode",))
    approved = Approved(shown({"path": SAFE, "...opts": spread}))
    assert approved.mismatch({"path": "/safe", "mode": 1}) is None
    assert approved.mismatch({"path": "/evil", "mode": 1}) is not None
    assert approved.mismatch({"path": "/safe", "other": 1}) is not None
    parks = Approved(shown({"...opts": spread}), computed_parks=True)
    assert "mode is computed" in (parks.mismatch({"mode": 1}) or "")
    inside = Approved(task(where=ObjectArgument(fields={"...opts": spread})), computed_parks=True)
    assert "where is computed" in (inside.mismatch({"where": {"mode": 1}}) or "")


def test_a_spread_of_any_keys_may_overwrite_earlier_fields() -> None:
    spread = ReferenceArgument(expression="opts")
    before = Approved(shown({"path": SAFE, "...opts": spread}))
    assert before.mismatch({"path": "/evil", "mode": 1}) is None
    after = Approved(shown({"...opts": spread, "path": SAFE}))
    assert after.mismatch({"path": "/safe", "mode": 1}) is None
    assert after.mismatch({"path": "/evil"}) is not None


def test_a_spread_of_the_callers_arguments_is_bound_key_by_key() -> None:
    spread = parameter("options")
    approved = Approved(
        shown({"path": SAFE, "...args.options": spread}), args={"options": {"mode": 1}}
    )
    assert approved.mismatch({"path": "/safe", "mode": 1}) is None
    assert approved.mismatch({"path": "/safe", "mode": 2}) is not None
    assert approved.mismatch({"path": "/safe", "mode": 1, "more": 1}) is not None
    overwritten = Approved(
        shown({"path": SAFE, "...args.options": spread}), args={"options": {"path": "/own"}}
    )
    assert overwritten.mismatch({"path": "/own"}) is None
    nothing = Approved(shown({"path": SAFE, "...args.options": spread}))
    assert nothing.mismatch({"path": "/safe"}) is None


def test_a_spread_of_a_result_is_bound_to_its_keys() -> None:
    approved = Approved(
        shown({"path": SAFE, "...a.options": result("n1", "options")}, "n2"),
        results={"n1": [{"options": {"mode": 1, "path": "/own"}}]},
    )
    assert approved.mismatch({"path": "/own", "mode": 1}, "n2") is None
    assert approved.mismatch({"path": "/safe", "mode": 1}, "n2") is None
    assert approved.mismatch({"path": "/safe", "mode": 2}, "n2") is not None
    assert approved.mismatch({"path": "/safe", "more": 2}, "n2") is not None


def test_a_known_spread_equals_its_fields() -> None:
    inner = ObjectArgument(fields={"mode": SAFE, "of": COMPUTED})
    approved = Approved(shown({"...{}": inner}))
    assert approved.mismatch({"mode": "/safe", "of": 3}) is None
    assert approved.mismatch({"mode": "/evil", "of": 3}) is not None


def test_a_call_outside_loops_is_made_once() -> None:
    once = Approved(task(path=SAFE, repeats=False))
    assert once.mismatch({"path": "/safe"}) is None
    assert "was to be made once" in (once.mismatch({"path": "/safe"}, occurrence=1) or "")
    assert Approved(task(path=SAFE)).mismatch({"path": "/safe"}, occurrence=9) is None


def test_a_call_at_no_node_of_its_tool_is_refused() -> None:
    approved = Approved(task(path=SAFE), capability(CAPABILITY, "n3"))
    for node in ("n9", "dyn:t:write", "n1/n1", "n3", "n3/n1", "n9/n1"):
        assert "was not seen" in (approved.mismatch({"path": "/safe"}, node) or "")


def test_tools_that_need_no_approval_are_not_bound_and_unknown_ones_not_granted() -> None:
    approved = Approved(task(path=SAFE))
    assert approved.mismatch({"any": 1}, tool="t:read") is None
    assert "was not seen" in (approved.mismatch({}, tool="t:other") or "")


def test_a_person_may_have_allowed_this_call_or_all_further_ones_of_its_node() -> None:
    args: JsonObject = {"path": "/evil"}
    very = GrantedCall(
        node_id="n1", occurrence=1, tool=WRITE, definition_hash="h2", args_hash=args_hash(args)
    )
    approved = Approved(task(path=SAFE), calls=(very,))
    assert approved.mismatch(args, occurrence=1) is None
    assert approved.mismatch(args) is not None
    assert approved.mismatch({"path": "/worse"}, occurrence=1) is not None
    rest = GrantedRest(node_id="dyn:t:x", tool="t:x", definition_hash="h3")
    further = Approved(rest=(rest,))
    assert further.mismatch({"any": 1}, "dyn:t:x", 7, "t:x") is None
    assert further.mismatch({"any": 1}, "n1", 7, "t:x") is not None
    call = ActualCall("dyn:t:x", 0, "t:x", {}, "")
    assert further.binding.is_approved(call)
    assert not further.binding.is_approved(ActualCall("n1", 0, WRITE, {}, ""))
    assert Approved(approved_by="ann").binding.is_approved(ActualCall("n1", 0, WRITE, {}, ""))
    assert further.binding.definition_hash(call) == "h3"
    assert further.binding.definition_hash(ActualCall("n1", 0, WRITE, {}, "")) == "h"
    assert further.binding.definition_hash(ActualCall("n1", 0, "t:x", {}, "")) is None


def test_a_standing_rule_allows_calls_by_their_arguments() -> None:
    under = ArgumentRule(name="path", under="/work")
    deny = PolicyRule(
        pattern="t:*", arguments=(ArgumentRule(name="path", under="/work/.git"),), verdict="deny"
    )
    allow = PolicyRule(pattern="t:write", arguments=(under,), verdict="allow")
    approved = Approved(standing=(deny, allow))
    assert approved.mismatch({"path": "/work/a"}, "dyn:t:write") is None
    assert approved.mismatch({"path": "/work/.git/config"}, "dyn:t:write") is not None
    assert approved.mismatch({"path": "/else"}, "dyn:t:write") is not None
    assert approved.mismatch({"path": "/work/a\\..\\.git"}, "dyn:t:write") is not None
    assert approved.mismatch({"path": "/work/..\\else"}, "dyn:t:write") is not None


def test_a_capabilitys_parameters_are_the_arguments_of_its_call() -> None:
    inner = nested(
        CAPABILITY,
        task(path=parameter("to"), mode=parameter("mode", default=(7,)), repeats=False),
        task("n2", path=result("n1", "path"), repeats=False),
        TaskNode(id="n3", line=1, column=1, tool="t:read"),
    )
    approved = Approved(
        capability(CAPABILITY, "n1", to=SAFE, repeats=False),
        capability(CAPABILITY, "n2", to=parameter("own", "to"), mode=result("n9", "mode")),
        capability(CAPABILITY, "n3", to=COMPUTED),
        capability(CAPABILITY, "n4").model_copy(update={"arguments": {"...args": parameter()}}),
        args={"own": {"to": "/mine"}, "to": "/top"},
        nested=[inner],
        results={"n9": [{"mode": 3}], "n1/n1": [{"path": "/r"}]},
    )
    assert approved.mismatch({"path": "/safe", "mode": 7}, "n1/n1") is None
    assert approved.mismatch({"path": "/mine", "mode": 7}, "n1/n1") is not None
    assert approved.mismatch({"path": "/safe", "mode": 7}, "n1/n1", occurrence=1) is not None
    assert approved.mismatch({"path": "/mine", "mode": 3}, "n2/n1") is None
    assert approved.mismatch({"path": "/mine", "mode": 7}, "n2/n1", occurrence=2) is None
    assert approved.mismatch({"path": "/mine", "mode": 4}, "n2/n1") is not None
    assert approved.mismatch({"path": "/any", "mode": 7}, "n3/n1") is None
    assert approved.mismatch({"path": "/top", "mode": 7}, "n4/n1") is None
    assert approved.mismatch({"path": "/r"}, "n1/n2") is None
    assert approved.mismatch({"path": "/r"}, "n2/n2") is not None


def test_parts_of_a_calls_arguments_are_followed() -> None:
    inner = nested(
        CAPABILITY,
        task(
            path=parameter("a", "b"),
            first=parameter("list", 0),
            any=parameter("list", None),
            beyond=parameter("list", 9),
            none=parameter("a", None),
            rest=parameter("rest", "x", default=(1,)),
            gone=parameter("gone"),
            item=parameter("list", "0"),
        ),
    )
    approved = Approved(
        capability(
            CAPABILITY,
            a=ObjectArgument(fields={"b": SAFE, "c": COMPUTED}),
            list=ArrayArgument(items=(SAFE, LiteralArgument(value="/two"))),
            rest=ObjectArgument(fields={"...o": ReferenceArgument(expression="o")}),
        ),
        nested=[inner],
    )
    fits: JsonObject = {"path": "/safe", "first": "/safe", "any": "/two", "rest": 5}
    assert approved.mismatch(fits, "n1/n1") is None
    assert approved.mismatch({**fits, "any": "/three"}, "n1/n1") is not None
    assert approved.mismatch({**fits, "first": "/two"}, "n1/n1") is not None
    assert approved.mismatch({**fits, "gone": 1}, "n1/n1") is not None
    assert approved.mismatch({**fits, "none": 1}, "n1/n1") is not None


def test_capabilities_that_lead_to_no_bound_tool_are_left_out_and_deep_ones_kept() -> None:
    read = TaskNode(id="n1", line=1, column=1, tool="t:read")
    nodes = [capability(CAPABILITY), capability(INNER, "n2"), read]
    deep = [nested(CAPABILITY, capability(INNER)), nested(INNER, task(path=SAFE))]
    assert set(granted_nodes(nodes, deep, {WRITE})) == {
        "n1",
        "n2",
        f"{CAPABILITY}/n1",
        f"{INNER}/n1",
    }
    assert granted_nodes(nodes, [nested(CAPABILITY, read), nested(INNER, read)], {WRITE}) == {}
    unresolved = CapabilityNode(id="n1", line=1, column=1, name="a:b")
    assert granted_nodes([unresolved], deep, {WRITE}).keys() == {
        f"{CAPABILITY}/n1",
        f"{INNER}/n1",
    }
    approved = Approved(*nodes, nested=deep)
    assert approved.mismatch({"path": "/safe"}, "n1/n1/n1") is None
    assert approved.mismatch({"path": "/evil"}, "n1/n1/n1") is not None


def test_a_digest_is_not_looked_into() -> None:
    inner = nested(CAPABILITY, task(path=parameter("text", 0)))
    long = LiteralArgument(value=None, sha256=sha256_of(["a"]))
    approved = Approved(capability(CAPABILITY, text=long), nested=[inner])
    assert approved.mismatch({"path": "anything"}, "n1/n1") is None


def test_a_parameter_without_a_path_is_computed() -> None:
    approved = Approved(task(path=ParameterArgument(parameter_name="path")))
    assert approved.mismatch({"path": "anything"}) is None


def test_canonical_json_is_that_of_javascript() -> None:
    assert (
        canonical({"b": [1.0, -0.0, True], "a": 2**60})
        == b'{"a":1152921504606847000,"b":[1,0,true]}'
    )
    assert sha256_of(2**53 + 1) == sha256_of(float(2**53))


def test_any_text_has_a_digest() -> None:
    assert sha256_of_text("a\ud800") != sha256_of_text("a")


def test_parts_of_what_a_spread_may_set_are_followed() -> None:
    inner = nested(CAPABILITY, task(path=parameter("o", "path"), or_=parameter("o", default=(2,))))
    approved = Approved(
        capability(CAPABILITY).model_copy(
            update={"arguments": {"...a": result("n9", "a"), "...b": result("n9", "b")}}
        ),
        nested=[inner],
        results={"n9": [{"a": {"o": {"path": "/a"}}, "b": {}}]},
    )
    whole: JsonValue = {"path": "/a"}
    assert approved.mismatch({"path": "/a", "or_": whole}, "n1/n1") is None
    assert approved.mismatch({"or_": 2}, "n1/n1") is None
    assert approved.mismatch({"path": "/b", "or_": 2}, "n1/n1") is not None


def test_known_arguments_are_the_literals_and_whether_they_are_all() -> None:
    assert known_arguments({"path": SAFE}) == ({"path": "/safe"}, True)
    assert known_arguments({"path": SAFE, "x": COMPUTED}) == ({"path": "/safe"}, False)
    assert known_arguments({"...{}": SAFE}) == ({}, False)
