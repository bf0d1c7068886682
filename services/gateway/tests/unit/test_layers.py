"""Approvals between the layers of a DAG: where a run parked_event, and what a person is shown."""

from dataclasses import replace

import pytest

from pml_common.contracts.decision import Verdict
from pml_common.contracts.executor import Checkpoint
from pml_common.contracts.structure import (
    Argument,
    ObjectArgument,
    ParameterArgument,
    ReferenceArgument,
    StaticStructure,
    TaskNode,
)
from pml_gateway.domain.api.api import ExecuteRequest, mode_of, request_hash
from pml_gateway.domain.api.errors import InvalidRequest
from pml_gateway.domain.api.responses import approval_asked, execute_response
from pml_gateway.domain.api.views import view_of
from pml_gateway.domain.workflow import layers
from pml_gateway.domain.workflow.events import Analyzed
from pml_gateway.domain.workflow.preview import PREVIEW_LENGTH, preview
from services.gateway.tests.support.builders import (
    AT,
    analyzed,
    with_capability,
    workflow,
)
from services.gateway.tests.support.layered import (
    RESULT,
    analysis_of,
    parked_run,
    requested,
    running,
    waits,
    with_command,
)
from services.gateway.tests.support.steps import after


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
    _, command = with_command(*after(new, Analyzed(analysis_of(new), AT)))
    assert command.checkpoints == ()


def test_what_the_policy_asks_about_counts_though_it_only_reads() -> None:
    new = workflow(request=requested())
    order = new.requested.layers
    assert order == (("read",), ("write", "look"), ("again",), ("last",))
    assert [each.layer for each in layers.checkpoints(order, analysis_of(new, "ask"))] == [2, 3, 4]


@pytest.mark.parametrize(("verdict", "expected"), [("ask", [2, 3]), ("allow", [])])
def test_a_rule_on_a_capability_counts_and_what_mocks_answer_does_not(
    verdict: Verdict, expected: list[int]
) -> None:
    new = workflow(request=requested())
    analysis = analysis_of(new)
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
    now, _ = parked_run()
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
    assert [task.tool for task in execute_response(now, None).tasks] == ["fs:read"]


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
    now, _ = parked_run()
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
    write = {"id": "w", "tool": "fs:write", "depends_on": [task["id"] for task in wide]}
    new = workflow(request=requested(dag={"tasks": [*wide, write]}))
    nodes = tuple(
        TaskNode(id=f"n{n}", tool="fs:write" if n == 6 else "fs:read", line=n, column=1)
        for n in range(1, 7)
    )
    analysis = analyzed(new).model_copy(update={"structure": StaticStructure(nodes=nodes)})
    assert layers.checkpoints(new.requested.layers, analysis)[0].node_ids == ("n6",)
    now, command = with_command(*after(new, Analyzed(analysis, AT)))
    fact = waits(command, 2, "n6").message
    assert "r0 (fs:read), r1 (fs:read), r2\\x1b (fs:read) and 2 more. Layer 2" in (
        layers.sentence(now, fact)
    )


@pytest.mark.parametrize(
    "source",
    [
        {"code": "return 1;"},
        {"tool": {"tool_id": "fs:read"}},
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
