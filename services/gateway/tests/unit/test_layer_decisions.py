"""Approvals between the layers of a DAG: the request, and the effect of each decision."""

from dataclasses import replace
from uuid import uuid4

import pytest
from pydantic import ValidationError

from pml_common.contracts.gateway import ApprovalDecided, ApprovalRequested, WorkflowFinished
from pml_gateway.domain.api.errors import Conflict
from pml_gateway.domain.api.responses import execute_response
from pml_gateway.domain.workflow import layers
from pml_gateway.domain.workflow.approval import Decide, answerable
from pml_gateway.domain.workflow.events import Due
from pml_gateway.domain.workflow.preview import preview
from services.gateway.tests.support.builders import (
    finished,
    later,
)
from services.gateway.tests.support.layered import (
    RESULT,
    answer,
    asked_for,
    parked_run,
    running,
    waits,
    with_command,
)
from services.gateway.tests.support.steps import after


def test_a_layer_is_asked_about_with_what_was_decided_on_its_tools() -> None:
    now, command = running()
    now, (asked,) = after(now, waits(command, 2, "n2", ("n1", RESULT)))
    assert isinstance(asked, ApprovalRequested)
    assert asked.expires_at == later(3605) == now.due_at
    assert asked.decision.verdict == "ask"
    assert [tool.tool for tool in asked.decision.tools] == ["fs:read", "fs:write"]


def test_continue_lets_it_go_on_under_the_same_grant_until_the_next_layer() -> None:
    now, first = parked_run()
    now, second = with_command(*after(now, answer(now)))
    assert second.command_id != first.command_id
    assert second.checkpoints == first.checkpoints
    assert second.grant.calls == ()
    assert second.grant.approved_by == "mira"
    now, (asked,) = after(now, waits(second, 3, "n4", ("n1", RESULT), ("n2", 1), ("n3", 2)))
    assert isinstance(asked, ApprovalRequested)
    layer = layers.asked(now, now.parked)
    assert layer is not None
    assert [(one.task, one.preview) for one in layer.done] == [("write", "1"), ("look", "2")]
    now, third = with_command(*after(now, answer(now, 20)))
    assert third.command_id != second.command_id
    end, _ = after(now, finished(now, result=1))
    assert end.state == "succeeded"


def test_a_layer_is_asked_about_once_and_an_answer_counts_once() -> None:
    now, command = parked_run()
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
    assert f"no approval was requested before layer {layer} of 4" in failed.error.message


def test_without_an_analysis_there_is_nothing_to_ask_about() -> None:
    now, command = running()
    parked = waits(command, 2, "n2", ("n1", RESULT))
    blind = replace(now, analysis=None)
    failed, _ = after(blind, parked)
    assert failed.state == "failed"
    assert layers.sentence(blind, parked.message) == "It has called fs:read."
    assert layers.question(blind, parked.message).tools == ()


@pytest.mark.parametrize(
    ("replan", "said"),
    [
        (False, "mira denied layer 2 of 4: not so. The run was parked there."),
        (True, "mira wants another plan instead of layer 2 of 4: not so. Send another program."),
    ],
)
def test_abort_and_replan_end_it_and_say_what_was_done(replan: bool, said: str) -> None:
    now, _ = parked_run()
    settled = answer(now, outcome="denied", reason="not so", replan=replan)
    failed, (told, _) = after(now, settled)
    assert isinstance(told, ApprovalDecided)
    assert told.outcome == "denied"
    assert failed.error is not None
    assert failed.error.kind == "denied"
    assert failed.error.message.startswith(said)
    assert failed.error.message.endswith("It has called fs:read.")
    assert [task.preview for task in execute_response(failed, None).tasks] == [preview(RESULT)]


def test_nobody_deciding_in_time_ends_it() -> None:
    now, _ = parked_run()
    failed, (told, _) = after(now, Due(later(3605)))
    assert isinstance(told, ApprovalDecided)
    assert told.outcome == "expired"
    assert failed.error is not None
    assert "it was not approved in time" in failed.error.message


def test_a_decision_names_the_layer_that_it_is_about() -> None:
    now, _ = parked_run()
    with pytest.raises(Conflict, match=r"of layer 2 of 4: review it and name its approval_id"):
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
