"""Contract of workflow stores."""

import asyncio
from dataclasses import replace
from functools import partial
from uuid import uuid4

import pytest

from pml_common.contracts.base import Message
from pml_common.contracts.decision import Verdict
from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.gateway import ApprovalDecided
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.api.errors import Conflict
from pml_gateway.domain.api.shown_calls import ShownToApprover
from pml_gateway.domain.workflow.approval import with_shown
from pml_gateway.domain.workflow.events import Analyzed, Cancelled, Decided, NotAnalyzed
from pml_gateway.domain.workflow.parking import with_definitions
from pml_gateway.domain.workflow.workflow import Step, Workflow, advance, run_ended
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
    made,
    rejected,
    workflow,
)
from services.gateway.tests.support.parked_runs import by_name, parked, parked_event
from services.gateway.tests.support.steps import step
from services.gateway.tests.support.stored import CONSUMER, NASTY, cause_of, take, waiting

pytestmark = pytest.mark.integration


@pytest.fixture
def workflows(stores: Stores) -> WorkflowStore:
    return stores.workflows


async def test_what_was_accepted_is_found_as_it_was(workflows: WorkflowStore) -> None:
    request = ExecuteRequest(code=NASTY, intent=NASTY, args={NASTY: [NASTY, 1e300, None]})
    new = workflow(request, key="k", traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01")
    assert await workflows.accept(new, (new.requested,)) is None
    assert await workflows.get(SCOPE, new.workflow_id) == new


@pytest.mark.parametrize("verdict", ["allow", "ask", "deny"])
async def test_a_workflow_is_accepted_with_its_first_step(
    workflows: WorkflowStore, stores: Stores, verdict: Verdict
) -> None:
    new = workflow(key="k", traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01")
    after, effects = advance(new, Analyzed(analyzed(new, verdict), AT), RULES)
    assert await workflows.accept(after, effects) is None
    assert await workflows.get(SCOPE, new.workflow_id) == after
    claimed = await stores.outbox.claim(10)
    assert [each.message for each in claimed] == list(effects)
    assert {each.traceparent for each in claimed} == {new.traceparent}
    assert await workflows.accept(replace(after), effects) == after
    waiting = await workflows.waiting(SCOPE, 10, 0)
    assert waiting.total == (verdict == "ask")
    if verdict == "allow":
        run = finished(after, result=1)
        taken = await take(workflows, after, run)
        assert taken.workflow is not None
        assert taken.workflow.state == "succeeded"


async def test_a_key_used_again_keeps_nothing_and_tells_what_it_stands_for(
    workflows: WorkflowStore, stores: Stores
) -> None:
    first = workflow(key="k")
    again = replace(workflow(ExecuteRequest(code="return 2;"), key="k"), timeout_s=1)
    assert await workflows.accept(first, (first.requested,)) is None
    assert await workflows.accept(again, (again.requested,)) == first
    assert [each.message for each in await stores.outbox.claim(10)] == [first.requested]


async def test_of_equal_keys_at_once_one_is_accepted(workflows: WorkflowStore) -> None:
    same = [workflow(key="k") for _ in range(8)]
    known = await asyncio.gather(*(workflows.accept(one, (one.requested,)) for one in same))
    assert sum(each is None for each in known) == 1


async def test_equal_keys_in_two_scopes_are_two_workflows(workflows: WorkflowStore) -> None:
    here, there = workflow(key="k"), workflow(key="k", scope=ELSEWHERE)
    assert await workflows.accept(here, (here.requested,)) is None
    assert await workflows.accept(there, (there.requested,)) is None
    assert await workflows.get(ELSEWHERE, here.workflow_id) is None
    assert await workflows.get(ELSEWHERE, there.workflow_id) == there


async def test_equal_keys_of_two_principals_are_two_workflows(workflows: WorkflowStore) -> None:
    """Also beside one that the former release stored, and stored together."""
    before = workflow(key="k", is_former=True)
    mine, theirs = workflow(key="k"), workflow(key="k", principal="agent-8")
    assert await workflows.accept(before, ()) is None
    assert await workflows.accept(mine, ()) is None
    third = workflow(key="k", principal="agent-9")
    added = await workflows.add([theirs, mine, third, before])
    assert added == {(SCOPE, theirs.workflow_id), (SCOPE, third.workflow_id)}
    for each in (before, mine, theirs, third):
        assert await workflows.get(SCOPE, each.workflow_id) == each


async def test_a_second_question_is_kept_beside_the_first(workflows: WorkflowStore) -> None:
    now = workflow()
    await workflows.accept(now, (now.requested,))
    await take(workflows, now, Analyzed(by_name(now), AT))
    for n in range(2):
        found = await workflows.get(SCOPE, now.workflow_id)
        assert found is not None
        assert found.approval is not None
        yes = Decided(found.approval.approval_id, "approved", "mira", later(n))
        settled = await workflows.change(
            SCOPE, now.workflow_id, partial(advance, workflow_event=yes, rules=RULES)
        )
        assert settled is not None
        command = settled[1][-1]
        assert isinstance(command, RunWorkflow)
        waits = parked_event(parked(command, {NASTY: n}, calls=[made(result=NASTY)]), later(n))
        taken = await take(workflows, now, waits, waits.message)
        found = await workflows.get(SCOPE, now.workflow_id)
        assert found == taken.workflow
        assert found is not None
        assert found.parked == with_definitions(waits)
        assert found.grant == command.grant
        page = await workflows.waiting(SCOPE, 10, 0)
        assert [(each.begun, each.outcome) for each in page.approvals] == [(True, None)]


async def test_each_step_is_kept_with_all_that_led_to_it(workflows: WorkflowStore) -> None:
    now = workflow()
    await workflows.accept(now, (now.requested,))
    run = finished(now, result=NASTY, calls=[made(result={NASTY: NASTY})])
    for cause in (Analyzed(analyzed(now), AT), run):
        now, _ = step(now, cause)
        await take(workflows, now, cause)
        assert await workflows.get(SCOPE, now.workflow_id) == now
    assert now.state == "succeeded"


async def test_the_ends_of_runs_are_stored_together_once(workflows: WorkflowStore) -> None:
    """One is cached, one changed since, one runs no longer, and one does not exist."""
    cached, changed, done, unknown = (workflow() for _ in range(4))
    for one in (cached, changed, done):
        after, effects = advance(one, Analyzed(analyzed(one), AT), RULES)
        await workflows.accept(after, effects)
    wish = Cancelled("mira", later(1))
    await workflows.change(
        SCOPE, changed.workflow_id, partial(advance, workflow_event=wish, rules=RULES)
    )
    runs = [finished(one, result=NASTY) for one in (cached, changed, done, unknown)]
    [ended] = await workflows.end(runs[2:3])
    assert ended.state == "succeeded"
    for _ in range(2):
        after = await workflows.end(runs)
        assert {each.workflow_id for each in after} == {run.workflow_id for run in runs[:3]}
    for one, run in zip((cached, changed, done), runs, strict=False):
        found = await workflows.get(SCOPE, one.workflow_id)
        assert found is not None
        assert (found.state, found.error, found.due_at) == ("succeeded", None, None)
        assert (found.run, found.finished_at) == (run.without_entries(), later(1))


async def test_workflows_accepted_elsewhere_are_added_as_they_are_now(
    workflows: WorkflowStore,
) -> None:
    request = ExecuteRequest(code=NASTY, intent=NASTY, args={NASTY: [NASTY, 1e300, None]})
    new = [workflow(request, key=str(number)) for number in range(3)]
    begun = [advance(each, Analyzed(analyzed(each), AT), RULES)[0] for each in new]
    known, runs, ended = begun
    assert await workflows.accept(known, ()) is None
    ended = run_ended(ended, finished(ended, result=NASTY))
    keys = {(SCOPE, each.workflow_id) for each in (runs, ended)}
    changed = replace(known, timeout_s=1.0)
    assert await workflows.add([ended, changed, runs]) == keys
    assert await workflows.add([changed, runs, ended]) == set()
    for each in (known, runs, ended):
        assert await workflows.get(SCOPE, each.workflow_id) == each
    [stored] = await workflows.end([finished(runs, result=1)])
    assert stored.state == "succeeded"


async def test_why_a_workflow_failed_without_a_run_is_kept(workflows: WorkflowStore) -> None:
    new = workflow()
    await workflows.accept(new, (new.requested,))
    workflow_event = NotAnalyzed(rejected(new), AT)
    await take(workflows, new, workflow_event)
    assert await workflows.get(SCOPE, new.workflow_id) == advance(new, workflow_event, RULES)[0]


async def test_an_approval_and_its_answer_are_kept(
    workflows: WorkflowStore, stores: Stores
) -> None:
    found, approval = await waiting(workflows)
    yes = Decided(approval.approval_id, "approved", "mira", later(5), "looks fine")

    def step(before: Workflow) -> Step:
        assert before == found
        after, effects = advance(before, yes, RULES)
        return with_shown(after, ShownToApprover(digest="ab" * 32, whole=False)), effects

    await stores.outbox.claim(10)
    taken = await workflows.change(SCOPE, found.workflow_id, step)
    assert taken is not None
    after, effects = taken
    assert await workflows.get(SCOPE, found.workflow_id) == after
    assert after.approval is not None
    assert after.approval.reason == "looks fine"
    assert after.approval.shown is not None
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
        settled = Decided(approval.approval_id, "approved", by, later(5))
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
    await workflows.accept(new, (new.requested,))
    cause, workflow_event = cause_of(new), Analyzed(analyzed(new, "ask"), AT)
    first = await take(workflows, new, workflow_event, cause)
    assert first.effects
    assert first.workflow == await workflows.get(SCOPE, new.workflow_id)
    again = await workflows.step_once(cause, CONSUMER, new.workflow_id, _never)
    assert again is not None
    assert tuple(again.effects) == tuple(first.effects)
    assert again.workflow is None


async def test_a_message_handled_by_many_at_once_takes_one_step(workflows: WorkflowStore) -> None:
    new = workflow()
    await workflows.accept(new, (new.requested,))
    cause, workflow_event = cause_of(new), Analyzed(analyzed(new, "ask"), AT)
    taken = await asyncio.gather(*(take(workflows, new, workflow_event, cause) for _ in range(6)))
    assert len({message.message_id for each in taken for message in each.effects}) == 1
    assert sum(each.workflow is not None for each in taken) == 1


async def test_of_different_messages_at_once_each_sees_what_the_other_did(
    workflows: WorkflowStore,
) -> None:
    new = workflow()
    await workflows.accept(new, (new.requested,))
    workflow_events = [Analyzed(analyzed(new), AT), NotAnalyzed(rejected(new), AT)] * 3
    taken = await asyncio.gather(*(take(workflows, new, each) for each in workflow_events))
    assert sum(bool(each.effects) for each in taken) == 1


async def test_a_step_that_raises_leaves_no_memory_of_its_message(
    workflows: WorkflowStore,
) -> None:
    new = workflow()
    await workflows.accept(new, (new.requested,))
    cause = cause_of(new)

    def fail(before: Workflow) -> Step:
        raise RuntimeError("midway")

    with pytest.raises(RuntimeError):
        await workflows.step_once(cause, CONSUMER, new.workflow_id, fail)
    assert await workflows.get(SCOPE, new.workflow_id) == new
    assert (await take(workflows, new, Analyzed(analyzed(new), AT), cause)).effects
