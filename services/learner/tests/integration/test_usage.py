"""Counted calls and opinions."""

from uuid import UUID, uuid4

import pytest

from pml_common.bus.errors import BusUnavailable, QueryFailed
from pml_common.contracts.base import Message
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.learner import (
    CAPABILITIES,
    Feedback,
    GiveFeedback,
    ListFeedback,
    ListToolUsage,
    ListTraces,
)
from pml_common.contracts.uses import UseJudged
from pml_learner.domain.opinions import WEIGHED_OF_ONE_HOUR
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.entrypoints.bus.on_list_traces import on_list_traces
from pml_learner.entrypoints.bus.on_run_finished import on_runs_finished
from pml_learner.entrypoints.bus.on_usage import (
    on_give_feedback,
    on_list_feedback,
    on_list_tool_usage,
)
from pml_learner.ports import TraceStore
from services.learner.tests.support.builders import (
    ELSEWHERE,
    SCOPE,
    STARTED_AT,
    finished_run,
    tool_call,
)

pytestmark = pytest.mark.integration


def called(scope: object = SCOPE) -> RunFinished:
    """Build a run of a named capability that makes two calls."""
    calls = [tool_call("fs:read", 1000, 1002), tool_call("fs:stat", 1000, 1001)]
    run = finished_run(calls=[*calls, tool_call("fs:read", 2000, 2004)], duration_ms=10.0)
    found = {"scope": scope, "called_as": "fs:tidy", "discovery_id": UUID(int=9)}
    return run.model_copy(update=found)


async def learn(store: TraceStore, *runs: RunFinished) -> None:
    await on_runs_finished(runs, store, TdRule())


async def test_a_redelivered_run_is_counted_once(trace_store: TraceStore) -> None:
    first, second = called(), called()
    await learn(trace_store, first, second)
    await learn(trace_store, second)
    await learn(trace_store, first, called(ELSEWHERE))
    page = await on_list_tool_usage(ListToolUsage(scope=SCOPE), trace_store)
    counted = [(each.server_id, each.tool_id, each.calls, each.succeeded) for each in page.usage]
    assert counted == [
        ("fs", "fs:read", 4, 4),
        (CAPABILITIES, "cap:fs:tidy", 2, 2),
        ("fs", "fs:stat", 2, 2),
    ]
    assert (page.total, page.calls) == (3, 8)
    assert page.usage[0].mean_duration_ms == 3.0
    assert page.usage[0].last_called_at.timestamp() == 2.0
    alone = ListToolUsage(scope=SCOPE, server_id=CAPABILITIES, limit=1)
    named = await on_list_tool_usage(alone, trace_store)
    assert [each.mean_duration_ms for each in named.usage] == [10.0]
    after = await on_list_tool_usage(ListToolUsage(scope=SCOPE, offset=3), trace_store)
    assert (after.usage, after.total) == ((), 3)


async def test_a_trace_tells_which_discovery_led_to_it(trace_store: TraceStore) -> None:
    await learn(trace_store, called(), finished_run())
    page = await trace_store.traces(ListTraces(scope=SCOPE))
    assert {each.discovery_id for each in page.traces} == {UUID(int=9), None}


async def test_a_principal_has_one_opinion_of_a_workflow(trace_store: TraceStore) -> None:
    run, dry = called(), finished_run(dry_run=True)
    await learn(trace_store, run, dry)

    def opinion(principal: str, useful: bool, workflow_id: UUID | None = None) -> GiveFeedback:
        return GiveFeedback(
            scope=SCOPE,
            principal=principal,
            workflow_id=workflow_id or run.workflow_id,
            useful=useful,
        )

    await on_give_feedback(opinion("mira", True), trace_store, ignore)
    await on_give_feedback(opinion("mira", False), trace_store, ignore)
    given = await on_give_feedback(opinion("ada", True), trace_store, ignore)
    assert (given.useful, given.not_useful) == (1, 1)
    assert given.capability_id == run.capability.capability_id
    page = await on_list_feedback(ListFeedback(scope=SCOPE), trace_store)
    assert (given.useful, given.not_useful, given.value) == (1, 1, 0.5)
    assert (given.low, given.high) == (
        pytest.approx(0.095, abs=1e-3),
        pytest.approx(0.905, abs=1e-3),
    )
    assert (page.feedback, page.total) == ((given,), 1)
    assert (await on_list_feedback(ListFeedback(scope=ELSEWHERE), trace_store)).total == 0
    elsewhere = opinion("mira", True).model_copy(update={"scope": ELSEWHERE})
    for unknown in (
        opinion("mira", True, uuid4()),
        opinion("mira", True, dry.workflow_id),
        elsewhere,
    ):
        with pytest.raises(QueryFailed, match="no run of workflow") as refused:
            await on_give_feedback(unknown, trace_store, ignore)
        assert refused.value.code == "not_found"


async def ignore(message: Message) -> None:
    """Publish to nobody."""


async def test_contradictory_opinions_are_kept_and_told_by_their_weights(
    trace_store: TraceStore,
) -> None:
    run, told = called(), list[Message]()
    await learn(trace_store, run)

    async def publish(message: Message) -> None:
        told.append(message)

    def opinion(principal: str, useful: bool) -> GiveFeedback:
        workflow_id = run.workflow_id
        return GiveFeedback(
            scope=SCOPE, principal=principal, workflow_id=workflow_id, useful=useful
        )

    said = (("mira", True), ("ada", False), ("mira", False), ("bob", True))
    *_, given = [
        await on_give_feedback(opinion(principal, useful), trace_store, publish)
        for principal, useful in said
    ]
    assert (given.useful, given.not_useful) == (1, 2)
    judged = [message for message in told if isinstance(message, UseJudged)]
    assert [(each.useful, each.not_useful) for each in judged] == [(1, 0), (1, 1), (0, 2), (1, 2)]
    assert {each.workflow_id for each in judged} == {run.workflow_id}
    assert len({each.event_id for each in judged}) == 4
    times = [each.judged_at for each in judged]
    assert times == sorted(times)


async def test_of_one_principal_and_hour_five_opinions_weigh_and_all_are_kept(
    trace_store: TraceStore,
) -> None:
    runs, told = [called() for _ in range(WEIGHED_OF_ONE_HOUR + 2)], list[Message]()
    await learn(trace_store, *runs)

    async def publish(message: Message) -> None:
        told.append(message)

    *_, given = [
        await on_give_feedback(
            GiveFeedback(
                scope=SCOPE, principal="mallory", workflow_id=run.workflow_id, useful=False
            ),
            trace_store,
            publish,
        )
        for run in runs
    ]
    assert given.not_useful == len(runs)
    weighed = [each.not_useful for each in told if isinstance(each, UseJudged)]
    # An hour may end between two of them.
    assert sum(weighed) in (WEIGHED_OF_ONE_HOUR, WEIGHED_OF_ONE_HOUR + 1, WEIGHED_OF_ONE_HOUR + 2)
    assert weighed[0] == 1.0
    assert await trace_store.weights(SCOPE, uuid4()) is None


async def test_an_opinion_that_could_not_be_told_is_to_be_repeated(
    trace_store: TraceStore,
) -> None:
    run = called()
    await learn(trace_store, run)
    said = GiveFeedback(scope=SCOPE, principal="mira", workflow_id=run.workflow_id, useful=True)

    async def publish(message: Message) -> None:
        raise BusUnavailable("NATS does not answer")

    with pytest.raises(QueryFailed, match="repeat the opinion") as failed:
        await on_give_feedback(said, trace_store, publish)
    assert failed.value.code == "unavailable"
    assert (await on_give_feedback(said, trace_store, ignore)).useful == 1


async def test_cursors_lead_through_all_calls_and_opinions(trace_store: TraceStore) -> None:
    runs = [
        finished_run(code_hash=f"{n:02}" * 32, calls=[tool_call(f"a:{n}", 0, 1)]) for n in "123"
    ]
    await learn(trace_store, *runs)
    for run in runs:
        said = GiveFeedback(scope=SCOPE, principal="mira", workflow_id=run.workflow_id, useful=True)
        await on_give_feedback(said, trace_store, ignore)
    used: list[str] = []
    judged: list[UUID] = []
    usage, opinions = ListToolUsage(scope=SCOPE, limit=2), ListFeedback(scope=SCOPE, limit=2)
    for left in (True, False):
        calls = await on_list_tool_usage(usage, trace_store)
        said = await on_list_feedback(opinions, trace_store)
        assert (calls.next_cursor is not None, said.next_cursor is not None) == (left, left)
        assert (calls.total, said.total) == (3 + 1 - left, 3)
        used += [each.tool_id for each in calls.usage]
        judged += [each.capability_id for each in said.feedback]
        usage = usage.model_copy(update={"cursor": calls.next_cursor})
        opinions = opinions.model_copy(update={"cursor": said.next_cursor})
        first = [tool_call("a:0", 0, 1), tool_call("a:0", 2, 3)]
        await learn(trace_store, finished_run(calls=first))
    assert used == ["a:1", "a:2", "a:3"], "what came before the place meanwhile is not there"
    assert sorted(judged) == sorted({run.capability.capability_id for run in runs})
    foreign = {"scope": SCOPE, "cursor": "none"}
    with pytest.raises(QueryFailed, match="next_cursor"):
        await on_list_tool_usage(ListToolUsage.model_validate(foreign), trace_store)
    with pytest.raises(QueryFailed, match="next_cursor"):
        await on_list_feedback(ListFeedback.model_validate(foreign), trace_store)


async def test_a_cursor_leads_through_traces_whatever_comes_meanwhile(
    trace_store: TraceStore,
) -> None:
    runs = [finished_run(started_at=STARTED_AT + n // 2) for n in range(5)]  # two of one moment
    await learn(trace_store, *runs)
    asked = ListTraces(scope=SCOPE, capability_id=runs[0].capability.capability_id, limit=2)
    seen: list[UUID] = []
    for left in (True, True, False):
        page = await on_list_traces(asked, trace_store)
        assert (page.next_cursor is not None) == left
        seen += [trace.workflow_id for trace in page.traces]
        asked = asked.model_copy(update={"cursor": page.next_cursor})
        await learn(trace_store, finished_run(started_at=STARTED_AT + 100))
    assert len(seen) == 5
    assert set(seen) == {run.workflow_id for run in runs}
    with pytest.raises(QueryFailed, match="next_cursor"):
        await on_list_traces(asked.model_copy(update={"cursor": "a"}), trace_store)


async def test_one_principals_many_opinions_move_the_value_by_its_share(
    trace_store: TraceStore,
) -> None:
    runs = [finished_run(started_at=STARTED_AT + number) for number in range(30)]
    await on_runs_finished(runs, trace_store, TdRule())

    async def say(principal: str, run: RunFinished, *, useful: bool) -> Feedback:
        query = GiveFeedback(
            scope=SCOPE, principal=principal, workflow_id=run.workflow_id, useful=useful
        )
        return await on_give_feedback(query, trace_store, ignore)

    for run in runs[:5]:
        for principal in ("ada", "mira", "noor"):
            await say(principal, run, useful=True)
    said = [await say("mallory", run, useful=False) for run in runs][-1]
    assert (said.useful, said.not_useful) == (15, 30)  # both are kept, and seen
    assert said.value is not None
    assert said.value >= 1 - 10 / (10 + 3 * 5)  # a new hour may begin meanwhile
