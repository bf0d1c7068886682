"""Contract of workflow stores: lists."""

from uuid import UUID

import pytest

from pml_common.contracts.error import WorkflowError
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.api.list_cursors import After, decode_after
from pml_gateway.domain.api.views import approvals_of, summary_of
from pml_gateway.domain.workflow.events import Analyzed, Decided, NotAnalyzed
from pml_gateway.domain.workflow.workflow import advance
from pml_gateway.ports import WorkflowStore
from services.gateway.tests.conftest import Stores
from services.gateway.tests.support.builders import (
    AT,
    ELSEWHERE,
    RULES,
    SCOPE,
    analyzed,
    finished,
    later,
    rejected,
    workflow,
)
from services.gateway.tests.support.stored import NASTY, take, waiting

pytestmark = pytest.mark.integration


@pytest.fixture
def workflows(stores: Stores) -> WorkflowStore:
    return stores.workflows


async def test_a_list_is_newest_first_and_its_scopes_own(workflows: WorkflowStore) -> None:
    error = WorkflowError(kind="tool_error", message=NASTY)
    kept = [workflow(ExecuteRequest(code=NASTY, intent=NASTY), at=later(n)) for n in range(5)]
    for one in (*kept, workflow(scope=ELSEWHERE)):
        await workflows.accept(one, (one.requested,))
    for workflow_event in (
        Analyzed(analyzed(kept[1]), AT),
        finished(kept[1], error=error),
    ):
        await take(workflows, kept[1], workflow_event)
    await take(workflows, kept[2], NotAnalyzed(rejected(kept[2]), AT))
    page = await workflows.page(SCOPE, limit=3, offset=1)
    wanted = [await workflows.get(SCOPE, kept[n].workflow_id) for n in (3, 2, 1)]
    assert page.total == 5
    assert list(page.workflows) == [summary_of(one) for one in wanted if one]
    assert page.workflows[2].error == error


async def test_what_waits_is_listed_until_it_is_decided(workflows: WorkflowStore) -> None:
    late, _ = await waiting(workflows, at=later(10))
    soon, approval = await waiting(workflows)
    await waiting(workflows, scope=ELSEWHERE)
    new = workflow()
    await workflows.accept(new, (new.requested,))
    assert await workflows.waiting(SCOPE, 10, 0) == approvals_of([soon, late], 2)
    assert await workflows.waiting(SCOPE, 1, 1) == approvals_of([late], 2)
    no = Decided(approval.approval_id, "denied", "mira", later(5))
    await workflows.change(SCOPE, soon.workflow_id, lambda one: advance(one, no, RULES))
    assert await workflows.waiting(SCOPE, 10, 0) == approvals_of([late], 1)


async def test_a_cursor_leads_on_whatever_comes_meanwhile(workflows: WorkflowStore) -> None:
    kept = [workflow(at=later(n // 2)) for n in range(5)]  # two of one moment
    for one in kept:
        await workflows.accept(one, (one.requested,))
    seen: list[UUID] = []
    after: After | None = None
    for _ in range(3):
        page = await workflows.page(SCOPE, 2, 0, after)
        seen += [each.workflow_id for each in page.workflows]
        after = decode_after(page.next_cursor)
        newer = workflow(at=later(100))
        await workflows.accept(newer, (newer.requested,))
    assert after is None
    assert len(seen) == len(set(seen)) == 5
    assert set(seen) == {one.workflow_id for one in kept}


async def test_a_cursor_leads_on_through_what_waits(workflows: WorkflowStore) -> None:
    soon, _ = await waiting(workflows)
    late, _ = await waiting(workflows, at=later(10))
    first = await workflows.waiting(SCOPE, 1, 0)
    assert [each.workflow_id for each in first.approvals] == [soon.workflow_id]
    rest = await workflows.waiting(SCOPE, 1, 0, decode_after(first.next_cursor))
    assert [each.workflow_id for each in rest.approvals] == [late.workflow_id]
    assert rest.next_cursor is None


async def test_what_stands_still_is_due_in_its_scope(workflows: WorkflowStore) -> None:
    there, first, second = workflow(scope=ELSEWHERE), workflow(), workflow(at=later(1))
    for one in (there, second, first, workflow(at=later(100))):
        await workflows.accept(one, (one.requested,))
    assert await workflows.due(SCOPE, later(59), 10) == []
    assert await workflows.due(ELSEWHERE, later(61), 10) == [there.workflow_id]
    due = [first.workflow_id, second.workflow_id]
    assert await workflows.due(SCOPE, later(61), 10) == due
    assert await workflows.due(SCOPE, later(61), 1) == due[:1]


async def test_old_ended_workflows_are_forgotten_but_those_with_an_approval(
    workflows: WorkflowStore,
) -> None:
    kept = [workflow(key=str(number)) for number in range(4)]
    for one in kept[:3]:
        await workflows.accept(one, (one.requested,))
        await take(workflows, one, Analyzed(analyzed(one), AT))
    for one in kept[:2]:
        await take(workflows, one, finished(one, result=1))
    decided, approval = await waiting(workflows, key=kept[3].idempotency_key)
    decision = Decided(approval.approval_id, "denied", "mira", later(1))
    await take(workflows, decided, decision)
    assert await workflows.forget(later(1), 10) == 0, "they ended then"
    assert [await workflows.forget(later(2), 1) for _ in range(3)] == [1, 1, 0]
    found = [await workflows.get(SCOPE, one.workflow_id) for one in kept]
    assert [one is None for one in found] == [True, True, False, False]
