"""What every store of workflows promises."""

import asyncio
from dataclasses import replace
from uuid import uuid4

import pytest

from pml_common.contracts.base import Event, Message
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.gateway import ApprovalDecided
from pml_gateway.domain.api import ExecuteRequest
from pml_gateway.domain.errors import Conflict
from pml_gateway.domain.happenings import Analyzed, Happening, NotAnalyzed, RunEnded, Settled
from pml_gateway.domain.views import approvals_of, summary_of
from pml_gateway.domain.workflow import Approval, Step, Workflow, advance
from pml_gateway.ports import Taken, WorkflowStore
from services.gateway.tests.conftest import Stores
from services.gateway.tests.examples import (
    AT,
    ELSEWHERE,
    RULES,
    SCOPE,
    analyzed,
    finished,
    later,
    made,
    rejected,
    workflow,
)

CONSUMER = "gateway-on-something"
NASTY = 'quote " backslash \\ NUL \x00 é 😀 \u2028 </script>'


@pytest.fixture
def workflows(stores: Stores) -> WorkflowStore:
    return stores.workflows


async def take(
    store: WorkflowStore, of: Workflow, happening: Happening, message: Event | None = None
) -> Taken:
    """Advance a stored workflow as a handler does."""
    cause = message or happening_cause(of)
    taken = await store.step_once(
        cause, CONSUMER, of.workflow_id, lambda before: advance(before, happening, RULES)
    )
    assert taken is not None
    return taken


def happening_cause(of: Workflow) -> Event:
    """A message of its own in the workflow's scope."""
    return of.requested.model_copy(update={"event_id": uuid4()})


async def waiting(store: WorkflowStore, **more: object) -> tuple[Workflow, Approval]:
    """A stored workflow that waits for approval."""
    new = workflow(**more)  # pyright: ignore[reportArgumentType] - handed on
    await store.accept(new)
    await take(store, new, Analyzed(analyzed(new, "ask"), new.requested.requested_at))
    found = await store.get(new.scope, new.workflow_id)
    assert found is not None
    assert found.approval is not None
    return found, found.approval


async def test_what_was_accepted_is_found_as_it_was(workflows: WorkflowStore) -> None:
    request = ExecuteRequest(code=NASTY, intent=NASTY, args={NASTY: [NASTY, 1e300, None]})
    new = workflow(request, key="k", traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01")
    assert await workflows.accept(new) is None
    assert await workflows.get(SCOPE, new.workflow_id) == new


async def test_a_key_used_again_keeps_nothing_and_tells_what_it_stands_for(
    workflows: WorkflowStore, stores: Stores
) -> None:
    first = workflow(key="k")
    again = replace(workflow(ExecuteRequest(code="return 2;"), key="k"), timeout_s=1)
    assert await workflows.accept(first) is None
    assert await workflows.accept(again) == first
    assert [each.message for each in await stores.outbox.claim(10)] == [first.requested]


async def test_of_equal_keys_at_once_one_is_accepted(workflows: WorkflowStore) -> None:
    known = await asyncio.gather(*(workflows.accept(workflow(key="k")) for _ in range(8)))
    assert sum(each is None for each in known) == 1


async def test_equal_keys_in_two_scopes_are_two_workflows(workflows: WorkflowStore) -> None:
    here, there = workflow(key="k"), workflow(key="k", scope=ELSEWHERE)
    assert await workflows.accept(here) is None
    assert await workflows.accept(there) is None
    assert await workflows.get(ELSEWHERE, here.workflow_id) is None
    assert await workflows.get(ELSEWHERE, there.workflow_id) == there


async def test_each_step_is_kept_with_all_that_led_to_it(workflows: WorkflowStore) -> None:
    now = workflow()
    await workflows.accept(now)
    run = finished(now, result=NASTY, calls=[made(result={NASTY: NASTY})])
    for happening in (Analyzed(analyzed(now), AT), RunEnded(run, later(1))):
        now, _ = advance(now, happening, RULES)
        await take(workflows, now, happening)
        assert await workflows.get(SCOPE, now.workflow_id) == now
    assert now.state == "succeeded"


async def test_why_a_workflow_failed_without_a_run_is_kept(workflows: WorkflowStore) -> None:
    new = workflow()
    await workflows.accept(new)
    happening = NotAnalyzed(rejected(new), AT)
    await take(workflows, new, happening)
    assert await workflows.get(SCOPE, new.workflow_id) == advance(new, happening, RULES)[0]


async def test_an_approval_and_its_answer_are_kept(
    workflows: WorkflowStore, stores: Stores
) -> None:
    found, approval = await waiting(workflows)
    yes = Settled(approval.approval_id, "approved", "mira", later(5), "looks fine")

    def step(before: Workflow) -> Step:
        assert before == found
        return advance(before, yes, RULES)

    await stores.outbox.claim(10)
    taken = await workflows.change(SCOPE, found.workflow_id, step)
    assert taken is not None
    after, effects = taken
    assert await workflows.get(SCOPE, found.workflow_id) == after
    assert after.approval is not None
    assert after.approval.reason == "looks fine"
    put = [each.message for each in await stores.outbox.claim(10)]
    assert sorted(put, key=_type) == sorted(effects, key=_type)


def _type(message: Message) -> str:
    return type(message).__name__


async def test_a_step_that_is_refused_changes_nothing(
    workflows: WorkflowStore, stores: Stores
) -> None:
    found, _ = await waiting(workflows)
    await stores.outbox.claim(10)

    def refuse(before: Workflow) -> Step:
        raise Conflict("no")

    with pytest.raises(Conflict):
        await workflows.change(SCOPE, found.workflow_id, refuse)
    assert await workflows.get(SCOPE, found.workflow_id) == found
    assert await stores.outbox.claim(10) == []


async def test_of_two_decisions_at_once_one_counts(workflows: WorkflowStore) -> None:
    found, approval = await waiting(workflows)

    async def decide(by: str) -> Step | None:
        settled = Settled(approval.approval_id, "approved", by, later(5))
        return await workflows.change(
            SCOPE, found.workflow_id, lambda before: advance(before, settled, RULES)
        )

    taken = [step for step in await asyncio.gather(*map(decide, "abcdef")) if step]
    told = [each for _, effects in taken for each in effects if isinstance(each, ApprovalDecided)]
    assert len(told) == 1
    after = await workflows.get(SCOPE, found.workflow_id)
    assert after is not None
    assert after.approval is not None
    assert after.approval.decided_by == told[0].decided_by


async def test_what_is_not_there_cannot_be_changed(workflows: WorkflowStore) -> None:
    found, _ = await waiting(workflows)
    assert await workflows.change(SCOPE, uuid4(), _never) is None
    assert await workflows.change(ELSEWHERE, found.workflow_id, _never) is None
    foreign = workflow(scope=ELSEWHERE).requested
    assert await workflows.step_once(foreign, CONSUMER, found.workflow_id, _never) is None


def _never(before: Workflow) -> Step:
    raise AssertionError(f"{before.workflow_id} was to be changed")


async def test_a_message_handled_again_states_the_same_facts_and_takes_no_step(
    workflows: WorkflowStore,
) -> None:
    new = workflow()
    await workflows.accept(new)
    cause, happening = happening_cause(new), Analyzed(analyzed(new, "ask"), AT)
    first = await take(workflows, new, happening, cause)
    assert first.effects
    assert first.workflow == await workflows.get(SCOPE, new.workflow_id)
    again = await workflows.step_once(cause, CONSUMER, new.workflow_id, _never)
    assert again is not None
    assert tuple(again.effects) == tuple(first.effects)
    assert again.workflow is None


async def test_a_message_handled_by_many_at_once_takes_one_step(workflows: WorkflowStore) -> None:
    new = workflow()
    await workflows.accept(new)
    cause, happening = happening_cause(new), Analyzed(analyzed(new, "ask"), AT)
    taken = await asyncio.gather(*(take(workflows, new, happening, cause) for _ in range(6)))
    assert len({message.message_id for each in taken for message in each.effects}) == 1
    assert sum(each.workflow is not None for each in taken) == 1


async def test_of_different_messages_at_once_each_sees_what_the_other_did(
    workflows: WorkflowStore,
) -> None:
    new = workflow()
    await workflows.accept(new)
    happenings = [Analyzed(analyzed(new), AT), NotAnalyzed(rejected(new), AT)] * 3
    taken = await asyncio.gather(*(take(workflows, new, each) for each in happenings))
    assert sum(bool(each.effects) for each in taken) == 1


async def test_a_step_that_raises_leaves_no_memory_of_its_message(
    workflows: WorkflowStore,
) -> None:
    new = workflow()
    await workflows.accept(new)
    cause = happening_cause(new)

    def fail(before: Workflow) -> Step:
        raise RuntimeError("midway")

    with pytest.raises(RuntimeError):
        await workflows.step_once(cause, CONSUMER, new.workflow_id, fail)
    assert await workflows.get(SCOPE, new.workflow_id) == new
    assert (await take(workflows, new, Analyzed(analyzed(new), AT), cause)).effects


async def test_a_list_is_newest_first_and_its_scopes_own(workflows: WorkflowStore) -> None:
    error = WorkflowError(kind="tool_error", message=NASTY)
    kept = [workflow(ExecuteRequest(code=NASTY, intent=NASTY), at=later(n)) for n in range(5)]
    for one in (*kept, workflow(scope=ELSEWHERE)):
        await workflows.accept(one)
    for happening in (
        Analyzed(analyzed(kept[1]), AT),
        RunEnded(finished(kept[1], error=error), AT),
    ):
        await take(workflows, kept[1], happening)
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
    await workflows.accept(workflow())
    assert await workflows.waiting(SCOPE, 10, 0) == approvals_of([soon, late], 2)
    assert await workflows.waiting(SCOPE, 1, 1) == approvals_of([late], 2)
    no = Settled(approval.approval_id, "denied", "mira", later(5))
    await workflows.change(SCOPE, soon.workflow_id, lambda one: advance(one, no, RULES))
    assert await workflows.waiting(SCOPE, 10, 0) == approvals_of([late], 1)


async def test_what_stands_still_is_due_in_every_scope(workflows: WorkflowStore) -> None:
    here, there = workflow(), workflow(scope=ELSEWHERE, at=later(1))
    for one in (here, there, workflow(at=later(100))):
        await workflows.accept(one)
    assert await workflows.due(later(59), 10) == []
    due = [(SCOPE, here.workflow_id), (ELSEWHERE, there.workflow_id)]
    assert await workflows.due(later(61), 10) == due
    assert await workflows.due(later(61), 1) == due[:1]
