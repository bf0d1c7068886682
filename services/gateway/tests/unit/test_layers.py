"""Between the layers of a DAG: where a run waits, what a person sees, how it goes on."""

from dataclasses import replace
from uuid import UUID, uuid4

import pytest
from pydantic import JsonValue, ValidationError

from pml_common.contracts import ids
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.decision import ToolDecision, Verdict
from pml_common.contracts.executor import Checkpoint, RunWorkflow, WantedCall, WorkflowParked
from pml_common.contracts.gateway import ApprovalDecided, ApprovalRequested, WorkflowFinished
from pml_common.contracts.structure import (
    Argument,
    ArrayArgument,
    CapabilityNode,
    ForkNode,
    JoinNode,
    LiteralArgument,
    ObjectArgument,
    ParameterArgument,
    ReferenceArgument,
    StaticStructure,
    TaskNode,
)
from pml_common.contracts.tool import JsonObject, args_hash
from pml_gateway.domain import layers
from pml_gateway.domain.answer import answer_of, approval_asked
from pml_gateway.domain.api import ExecuteRequest, mode_of, request_hash
from pml_gateway.domain.approval import Decide, answerable
from pml_gateway.domain.errors import Conflict, InvalidRequest
from pml_gateway.domain.happenings import Analyzed, Due, Parked, RunEnded, Settled
from pml_gateway.domain.preview import PREVIEW_LENGTH, preview
from pml_gateway.domain.views import view_of
from pml_gateway.domain.workflow import Workflow
from services.gateway.tests.examples import (
    AT,
    READ,
    WRITE,
    analyzed,
    finished,
    later,
    made,
    with_capability,
    workflow,
)
from services.gateway.tests.steps import after

TASKS: list[JsonObject] = [
    {"id": "read", "tool": "fs:read"},
    {"id": "write", "tool": "fs:write", "dependsOn": ["read"]},
    {"id": "look", "tool": "cap:fs:look", "dependsOn": ["read"]},
    {"id": "again", "tool": "fs:read", "dependsOn": ["write", "look"]},
    {"id": "last", "tool": "fs:read", "dependsOn": ["again"]},
]
ARGUMENTS: dict[str, Argument] = {
    "path": ReferenceArgument(expression="t1.items[0].path", node_id="n1"),
    "text": ParameterArgument(parameter_name="text"),
    "mode": LiteralArgument(value="w"),
    "more": ObjectArgument(
        fields={
            "long": ParameterArgument(parameter_name="long"),
            "list": ArrayArgument(items=(ReferenceArgument(expression="t1.n", node_id="n1"),)),
        }
    ),
}
RESULT: JsonObject = {"items": [{"path": "/a"}], "n": 7}
ARGS: JsonObject = {"text": "hello", "long": "x" * 300, "odd name": 1}


def requested(**more: object) -> ExecuteRequest:
    body = {"dag": {"tasks": TASKS}, "per_layer_validation": True, "args": ARGS}
    return ExecuteRequest.model_validate({**body, **more})


def understood(of: Workflow, verdict: Verdict = "allow") -> ExecutionAnalyzed:
    """The analysis of the DAG: fs:read is read-only, fs:write is not."""
    nodes = (
        TaskNode(id="n1", tool="fs:read", line=1, column=7),
        ForkNode(id="f1", line=2, column=7),
        TaskNode(id="n2", tool="fs:write", line=3, column=3, arguments=ARGUMENTS),
        CapabilityNode(id="n3", name="fs:look", line=4, column=3),
        JoinNode(id="j1", line=2, column=7),
        TaskNode(id="n4", tool="fs:read", line=6, column=7),
        TaskNode(id="n5", tool="fs:read", line=7, column=7),
    )
    analysis = analyzed(of, verdict)
    decided = (
        ("fs:read", READ.definition_hash, ("n1", "n3", "n4", "n5"), True),
        ("fs:write", WRITE.definition_hash, ("n2",), False),
    )
    tools = tuple(
        ToolDecision(
            tool=tool,
            verdict=verdict,
            reason="",
            definition_hash=definition_hash,
            node_ids=node_ids,
            read_only=read_only,
        )
        for tool, definition_hash, node_ids, read_only in decided
    )
    decision = analysis.decision.model_copy(update={"tools": tools})
    return analysis.model_copy(
        update={"structure": StaticStructure(nodes=nodes), "decision": decision}
    )


def running() -> tuple[Workflow, RunWorkflow]:
    new = workflow(request=requested())
    return goes_on(*after(new, Analyzed(understood(new), AT)))


def goes_on(now: Workflow, effects: tuple[object, ...]) -> tuple[Workflow, RunWorkflow]:
    command = effects[-1]
    assert isinstance(command, RunWorkflow)
    return now, command


def waits(under: RunWorkflow, layer: int, node_id: str, *calls: tuple[str, JsonValue]) -> Parked:
    """The run of a command stands before a layer; calls by node id and result."""
    tool = "fs:write" if node_id == "n2" else "fs:read"
    fact = WorkflowParked(
        scope=under.scope,
        event_id=ids.effect_id(under.command_id, "workflow-parked"),
        workflow_id=under.workflow_id,
        command_id=under.command_id,
        wanted=WantedCall(
            node_id=node_id,
            occurrence=0,
            tool=tool,
            definition_hash=WRITE.definition_hash,
            args_hash=args_hash({}),
            preview={},
            layer=layer,
        ),
        grant=under.grant,
        task_results=tuple(made(node_id=node, result=result) for node, result in calls),
    )
    return Parked(fact, later(5))


def standing() -> tuple[Workflow, RunWorkflow]:
    """The workflow once its run waits before the second layer."""
    now, command = running()
    now, _ = after(now, waits(command, 2, "n2", ("n1", RESULT)))
    assert now.state == "awaiting_approval"
    return now, command


def asked_for(now: Workflow) -> UUID:
    assert now.approval is not None
    return now.approval.approval_id


def answer(now: Workflow, seconds: float = 10, **more: object) -> Settled:
    settled = Settled(asked_for(now), "approved", "mira", later(seconds))
    return replace(settled, **more)  # pyright: ignore[reportArgumentType] - handed on


def test_a_run_waits_on_both_sides_of_layers_that_do_more_than_read() -> None:
    _, command = running()
    assert command.checkpoints == (
        Checkpoint(layer=2, node_ids=("n2", "n3")),
        Checkpoint(layer=3, node_ids=("n4",)),
    )
    assert command.grant.calls == ()


def test_nobody_is_asked_between_layers_who_did_not_want_it() -> None:
    new = workflow(request=requested(per_layer_validation=False))
    assert new.requested.layers == ()
    _, command = goes_on(*after(new, Analyzed(understood(new), AT)))
    assert command.checkpoints == ()


def test_what_the_policy_asks_about_counts_though_it_only_reads() -> None:
    new = workflow(request=requested())
    order = new.requested.layers
    assert order == (("read",), ("write", "look"), ("again",), ("last",))
    assert [each.layer for each in layers.checkpoints(order, understood(new, "ask"))] == [2, 3, 4]


@pytest.mark.parametrize(("verdict", "expected"), [("ask", [2, 3]), ("allow", [])])
def test_a_rule_on_a_capability_counts_and_what_mocks_answer_does_not(
    verdict: Verdict, expected: list[int]
) -> None:
    new = workflow(request=requested())
    analysis = understood(new)
    named = with_capability(analysis, verdict).capabilities[0]
    tools = tuple(one.model_copy(update={"mocked": True}) for one in analysis.decision.tools)
    dry = analysis.model_copy(
        update={
            "capabilities": (named.model_copy(update={"node_ids": ("n3",)}),),
            "decision": analysis.decision.model_copy(update={"tools": tools}),
        }
    )
    assert [each.layer for each in layers.checkpoints(new.requested.layers, dry)] == expected


def test_a_person_sees_what_was_done_and_what_comes_next() -> None:
    now, _ = standing()
    assert now.approval is not None
    asked = approval_asked(now, now.approval)
    layer = asked.layer
    assert layer is not None
    assert (layer.number, layer.of) == (2, 4)
    (done,) = layer.done
    assert (done.task, done.node_id, done.tool) == ("read", "n1", "fs:read")
    assert done.preview == preview(RESULT)
    assert [(one.task, one.tool, one.elevated) for one in layer.next] == [
        ("write", "fs:write", True),
        ("look", "cap:fs:look", False),
    ]
    given = layer.next[0].arguments
    assert {name: given[name].model_dump()["value"] for name in given} == {
        "path": "/a",
        "text": "hello",
        "mode": "w",
        "more": '{"long": "' + "x" * (PREVIEW_LENGTH - 11) + "…",
    }
    assert asked.begun
    assert asked.tools == ("fs:write", "cap:fs:look")
    assert [call.node_id for call in asked.calls] == ["n2", "n3"]
    assert asked.reasons == (
        "Layer 1 of 4 is done: read (fs:read). Layer 2 comes next: write (fs:write), "
        "look (cap:fs:look). It has called fs:read.",
    )
    view = view_of(now).approval
    assert view is not None
    assert (view.layer, view.begun) == (layer, True)
    assert [task.tool for task in answer_of(now, None).tasks] == ["fs:read"]


@pytest.mark.parametrize(
    "argument",
    [
        ReferenceArgument(expression="t1.missing", node_id="n1"),
        ReferenceArgument(expression="t1 + 1", node_id="n1"),
        ReferenceArgument(expression="t9", node_id="n9"),
        ReferenceArgument(expression="t9"),
        ParameterArgument(parameter_name="absent"),
        ParameterArgument(parameter_name="odd name"),
    ],
)
def test_an_argument_that_nobody_can_tell_is_shown_as_it_is_written(argument: Argument) -> None:
    now, _ = standing()
    assert now.analysis is not None
    nodes = tuple(
        node.model_copy(update={"arguments": {"it": ObjectArgument(fields={"in": argument})}})
        if node.id == "n2"
        else node
        for node in now.analysis.structure.nodes
    )
    analysis = now.analysis.model_copy(update={"structure": StaticStructure(nodes=nodes)})
    layer = layers.asked(replace(now, analysis=analysis), now.parked)
    assert layer is not None
    assert layer.next[0].arguments == {"it": ObjectArgument(fields={"in": argument})}


def test_of_a_wide_layer_a_few_are_named() -> None:
    wide = [{"id": f"r{n}\x1b" if n == 2 else f"r{n}", "tool": "fs:read"} for n in range(5)]
    write = {"id": "w", "tool": "fs:write", "dependsOn": [task["id"] for task in wide]}
    new = workflow(request=requested(dag={"tasks": [*wide, write]}))
    nodes = tuple(
        TaskNode(id=f"n{n}", tool="fs:write" if n == 6 else "fs:read", line=n, column=1)
        for n in range(1, 7)
    )
    analysis = analyzed(new).model_copy(update={"structure": StaticStructure(nodes=nodes)})
    assert layers.checkpoints(new.requested.layers, analysis)[0].node_ids == ("n6",)
    now, command = goes_on(*after(new, Analyzed(analysis, AT)))
    fact = waits(command, 2, "n6").fact
    assert "r0 (fs:read), r1 (fs:read), 'r2\\x1b' (fs:read) and 2 more. Layer 2" in (
        layers.sentence(now, fact)
    )


def test_a_layer_is_asked_about_with_what_was_decided_on_its_tools() -> None:
    now, command = running()
    now, (asked,) = after(now, waits(command, 2, "n2", ("n1", RESULT)))
    assert isinstance(asked, ApprovalRequested)
    assert asked.expires_at == later(3605) == now.due_at
    assert asked.decision.verdict == "ask"
    assert [tool.tool for tool in asked.decision.tools] == ["fs:read", "fs:write"]


def test_continue_lets_it_go_on_under_the_same_grant_until_the_next_layer() -> None:
    now, first = standing()
    now, second = goes_on(*after(now, answer(now)))
    assert second.command_id != first.command_id
    assert second.checkpoints == first.checkpoints
    assert second.grant.calls == ()
    assert second.grant.approved_by == "mira"
    now, (asked,) = after(now, waits(second, 3, "n4", ("n1", RESULT), ("n2", 1), ("n3", 2)))
    assert isinstance(asked, ApprovalRequested)
    layer = layers.asked(now, now.parked)
    assert layer is not None
    assert [(one.task, one.preview) for one in layer.done] == [("write", "1"), ("look", "2")]
    now, third = goes_on(*after(now, answer(now, 20)))
    assert third.command_id != second.command_id
    end, _ = after(now, RunEnded(finished(now, result=1), later(30)))
    assert end.state == "succeeded"


def test_a_layer_is_asked_about_once_and_an_answer_counts_once() -> None:
    now, command = standing()
    assert after(now, waits(command, 2, "n2", ("n1", RESULT))) == (now, ())
    settled = answer(now)
    went_on, _ = after(now, settled)
    assert after(went_on, settled) == (went_on, ())
    assert after(went_on, waits(command, 2, "n2")) == (went_on, ())
    assert after(now, replace(settled, approval_id=uuid4())) == (now, ())


@pytest.mark.parametrize(("layer", "node_id"), [(4, "n5"), (9, "n2"), (2, "n4")])
def test_a_run_that_waits_where_nobody_wanted_it_ends(layer: int, node_id: str) -> None:
    now, command = running()
    failed, (end,) = after(now, waits(command, layer, node_id))
    assert isinstance(end, WorkflowFinished)
    assert failed.error is not None
    assert f"nobody wanted to be asked before layer {layer} of 4" in failed.error.message


def test_without_an_analysis_there_is_nothing_to_ask_about() -> None:
    now, command = running()
    parked = waits(command, 2, "n2", ("n1", RESULT))
    blind = replace(now, analysis=None)
    failed, _ = after(blind, parked)
    assert failed.state == "failed"
    assert layers.sentence(blind, parked.fact) == "It has called fs:read."
    assert layers.question(blind, parked.fact).tools == ()


@pytest.mark.parametrize(
    ("replan", "said"),
    [
        (False, "mira denied layer 2 of 4: not so. The run had stopped there."),
        (True, "mira wants another plan instead of layer 2 of 4: not so. Send another program."),
    ],
)
def test_abort_and_replan_end_it_and_say_what_was_done(replan: bool, said: str) -> None:
    now, _ = standing()
    settled = answer(now, outcome="denied", reason="not so", replan=replan)
    failed, (told, _) = after(now, settled)
    assert isinstance(told, ApprovalDecided)
    assert told.outcome == "denied"
    assert failed.error is not None
    assert failed.error.kind == "denied"
    assert failed.error.message.startswith(said)
    assert failed.error.message.endswith("It has called fs:read.")
    assert [task.preview for task in answer_of(failed, None).tasks] == [preview(RESULT)]


def test_nobody_deciding_in_time_ends_it() -> None:
    now, _ = standing()
    failed, (told, _) = after(now, Due(later(3605)))
    assert isinstance(told, ApprovalDecided)
    assert told.outcome == "expired"
    assert failed.error is not None
    assert "nobody approved it in time" in failed.error.message


def test_a_decision_names_the_layer_that_it_is_about() -> None:
    now, _ = standing()
    with pytest.raises(Conflict, match=r"of layer 2 of 4: look at it and name it"):
        answerable(now, None, later(10))
    with pytest.raises(Conflict, match="waits for approval"):
        answerable(now, uuid4(), later(10))
    assert answerable(now, asked_for(now), later(10)) == now.approval


@pytest.mark.parametrize(
    ("word", "outcome"),
    [
        ("continue", "approved"),
        ("approve", "approved"),
        ("abort", "denied"),
        ("deny", "denied"),
        ("replan", "denied"),
    ],
)
def test_a_decision_has_several_words(word: str, outcome: str) -> None:
    assert Decide.model_validate({"decision": word}).outcome == outcome
    with pytest.raises(ValidationError):
        Decide.model_validate({"decision": word.upper()})


@pytest.mark.parametrize(
    "source",
    [
        {"code": "return 1;"},
        {"tool": {"toolId": "fs:read"}},
        {"capability": "fs:look"},
        {"intent": "read"},
    ],
)
def test_only_a_dag_has_layers(source: dict[str, object]) -> None:
    request = ExecuteRequest.model_validate({**source, "per_layer_validation": True})
    with pytest.raises(InvalidRequest, match="is for a dag") as refused:
        mode_of(request, 60)
    assert refused.value.field == "per_layer_validation"


def test_with_and_without_are_two_requests_under_one_key() -> None:
    assert mode_of(requested(), 60) == "direct"
    assert request_hash(requested()) != request_hash(requested(per_layer_validation=False))
