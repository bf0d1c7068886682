"""Contract of every trace store: counted calls and opinions."""

from uuid import UUID, uuid4

import pytest

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.learner import (
    CAPABILITIES,
    GiveFeedback,
    ListFeedback,
    ListToolUsage,
    ListTraces,
)
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.entrypoints.bus.on_run_finished import on_runs_finished
from pml_learner.entrypoints.bus.on_usage import (
    on_give_feedback,
    on_list_feedback,
    on_list_tool_usage,
)
from pml_learner.ports import TraceStore
from services.learner.tests.support.builders import ELSEWHERE, SCOPE, finished_run, tool_call


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

    await on_give_feedback(opinion("mira", True), trace_store)
    await on_give_feedback(opinion("mira", False), trace_store)
    given = await on_give_feedback(opinion("ada", True), trace_store)
    assert (given.useful, given.not_useful) == (1, 1)
    assert given.capability_id == run.capability.capability_id
    page = await on_list_feedback(ListFeedback(scope=SCOPE), trace_store)
    assert (page.feedback, page.total) == ((given,), 1)
    assert (await on_list_feedback(ListFeedback(scope=ELSEWHERE), trace_store)).total == 0
    elsewhere = opinion("mira", True).model_copy(update={"scope": ELSEWHERE})
    for unknown in (
        opinion("mira", True, uuid4()),
        opinion("mira", True, dry.workflow_id),
        elsewhere,
    ):
        with pytest.raises(QueryFailed, match="no run of workflow") as refused:
            await on_give_feedback(unknown, trace_store)
        assert refused.value.code == "not_found"
