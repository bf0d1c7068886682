"""Deletion of a workflow's data."""

from dataclasses import replace

import pytest

from pml_common.contracts.gateway import WorkflowDataDeleted
from pml_common.testing.memory_bus import MemoryBus
from pml_gateway.adapters.live_workflows import LiveWorkflows
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.api.errors import Conflict, Gone
from pml_gateway.domain.api.views import summary_of
from pml_gateway.domain.workflow.deletion import deleted, require_kept
from pml_gateway.domain.workflow.events import Analyzed
from services.gateway.tests.support.builders import (
    AT,
    SCOPE,
    analyzed,
    finished,
    later,
    workflow,
)
from services.gateway.tests.support.fake_stores import FakeWorkflows
from services.gateway.tests.support.steps import after, approve, asking

SECRET = "a word that must go"


def test_what_is_left_says_whose_it_was_when_it_ended_and_who_decided() -> None:
    request = ExecuteRequest(code=f"return '{SECRET}';", intent=SECRET, args={SECRET: SECRET})
    new = workflow(request, key="k", traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01")
    running, _ = after(new, asking(new), approve(new))
    ended, _ = after(running, finished(running, result=SECRET))
    assert ended.approval is not None
    ended = replace(ended, approval=replace(ended.approval, reason=SECRET))
    require_kept(ended)
    left, (told,) = deleted(ended, later(60))
    assert SECRET in repr(ended)
    assert SECRET not in repr(left)
    assert SECRET not in told.model_dump_json()
    assert isinstance(told, WorkflowDataDeleted)
    assert (told.workflow_id, told.deleted_by) == (new.workflow_id, "agent-7")
    assert left.idempotency_key == "k"
    assert left.approval is not None
    assert (left.approval.outcome, left.approval.decided_by) == ("approved", "mira")
    seen = summary_of(left)
    assert (seen.status, seen.principal, seen.intent) == ("success", "agent-7", None)
    assert (seen.created_at, seen.finished_at, seen.deleted_at) == (
        AT,
        ended.finished_at,
        later(60),
    )
    assert deleted(left, later(90)) == (left, ())
    with pytest.raises(Gone, match=r"was deleted at 2026-11-21T09:31:00"):
        require_kept(left)


def test_a_workflow_that_goes_on_must_be_cancelled_first() -> None:
    new = workflow()
    waiting, _ = after(new, asking(new))
    for each in (new, waiting):
        with pytest.raises(Conflict, match="cancel it first"):
            deleted(each, later(1))


async def test_a_gateway_that_heard_the_end_lists_what_another_deleted_as_deleted() -> None:
    kept, bus, new = FakeWorkflows(), MemoryBus(), workflow()
    here, there = LiveWorkflows(kept, bus), LiveWorkflows(kept, bus)
    running, effects = after(new, Analyzed(analyzed(new), AT))
    await here.accept(running, effects)
    end = finished(running, result=SECRET)
    there.hear(running, end)
    await here.end([end])
    taken = await here.change(SCOPE, new.workflow_id, lambda before: deleted(before, later(60)))
    assert taken is not None
    (listed,) = (await there.page(SCOPE, 10, 0)).workflows
    assert (listed.deleted_at, listed.intent) == (later(60), None)
