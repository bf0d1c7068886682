"""Contract of workflow stores: workflows that calls made again join."""

import asyncio
from dataclasses import replace

import pytest

from pml_common.contracts.scope import Scope
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.workflow.events import Analyzed, Decided
from pml_gateway.domain.workflow.workflow import Step, Workflow, advance, run_ended
from pml_gateway.ports import WorkflowStore
from services.gateway.tests.conftest import Stores
from services.gateway.tests.support.builders import (
    AT,
    ELSEWHERE,
    RULES,
    SCOPE,
    VERDICTS,
    analyzed,
    finished,
    later,
    workflow,
)
from services.gateway.tests.support.stored import NASTY

pytestmark = pytest.mark.integration

REQUEST = ExecuteRequest(code=NASTY, args={NASTY: NASTY})


@pytest.fixture
def workflows(stores: Stores) -> WorkflowStore:
    return stores.workflows


async def _asked(
    workflows: WorkflowStore, seconds: float = 0, *, scope: Scope = SCOPE, **request: object
) -> Workflow:
    """Store a workflow that waits for approval."""
    changed = REQUEST.model_copy(update=request)
    new = workflow(changed, scope=scope, at=later(seconds))
    after, effects = advance(new, Analyzed(analyzed(new, "ask"), AT), RULES)
    assert await workflows.accept(after, effects) is None
    return after


async def _decide(workflows: WorkflowStore, of: Workflow, outcome: str) -> Workflow:
    assert of.approval is not None
    decided = Decided(of.approval.approval_id, "approved", "noor", AT, verdicts=VERDICTS)

    def step(before: Workflow) -> Step:
        return advance(before, replace(decided, outcome=outcome), RULES)

    taken = await workflows.change(SCOPE, of.workflow_id, step)
    assert taken is not None
    return taken[0]


async def _joined(workflows: WorkflowStore, of: Workflow) -> Workflow | None:
    assert of.call_digest is not None
    return await workflows.joinable(of.scope, of.call_digest)


async def test_the_latest_that_waits_for_approval_is_found(workflows: WorkflowStore) -> None:
    first = await _asked(workflows)
    assert await _joined(workflows, first) == first
    await _asked(workflows, code="other")
    await _asked(workflows, 2, scope=ELSEWHERE)
    latest = await _asked(workflows, 1)
    assert await _joined(workflows, first) == latest


async def test_what_was_approved_is_found_until_it_is_delivered(workflows: WorkflowStore) -> None:
    running = await _decide(workflows, await _asked(workflows), "approved")
    assert await _joined(workflows, running) == running
    end = finished(running)
    await workflows.end([end])
    assert await _joined(workflows, running) == run_ended(running, end)
    for _ in range(2):
        await workflows.deliver(SCOPE, running.workflow_id)
    assert await _joined(workflows, running) is None


async def test_of_equal_calls_that_come_together_one_is_stored(workflows: WorkflowStore) -> None:
    async def call(seconds: float, **request: object) -> tuple[Workflow, Workflow | None]:
        new = workflow(REQUEST.model_copy(update=request), at=later(seconds))
        after, effects = advance(new, Analyzed(analyzed(new, "ask"), AT), RULES)
        return after, await workflows.accept(after, effects, join_at=AT)

    calls = await asyncio.gather(*(call(n) for n in range(5)), call(9, code="other"))
    equal, (other, joined_by_other) = calls[:5], calls[5]
    (stored,) = [new for new, joined in equal if joined is None]
    assert all(joined in (None, stored) for _, joined in equal)
    assert joined_by_other is None
    assert await workflows.get(SCOPE, stored.workflow_id) == stored
    assert await workflows.get(SCOPE, other.workflow_id) == other


async def test_an_equal_call_is_stored_once_the_approval_has_expired(
    workflows: WorkflowStore,
) -> None:
    first = await _asked(workflows)
    assert first.approval is not None
    new = workflow(REQUEST, at=later(5))
    after, effects = advance(new, Analyzed(analyzed(new, "ask"), AT), RULES)
    assert await workflows.accept(after, effects, join_at=AT) == first
    assert await workflows.accept(after, effects, join_at=first.approval.expires_at) is None
    assert await workflows.accept(after, effects, join_at=AT) == after


async def test_what_was_denied_or_needed_no_approval_or_has_a_key_is_not_found(
    workflows: WorkflowStore,
) -> None:
    denied = await _decide(workflows, await _asked(workflows), "denied")
    assert await _joined(workflows, denied) is None
    keyed = await _asked(workflows, code="keyed", idempotency_key="k")
    assert keyed.call_digest is None
    allowed = workflow(REQUEST.model_copy(update={"code": "allowed"}))
    running, _ = advance(allowed, Analyzed(analyzed(allowed), AT), RULES)
    assert await workflows.add([running])
    assert await _joined(workflows, running) is None
