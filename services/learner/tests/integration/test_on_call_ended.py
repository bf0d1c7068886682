"""Traces of direct calls."""

import json
from pathlib import Path

import pytest

from pml_common.contracts.direct_call import CallEnded
from pml_common.contracts.learner import ListTraces
from pml_learner.entrypoints.bus.on_call_ended import on_calls_ended
from pml_learner.entrypoints.bus.on_list_traces import on_list_traces
from pml_learner.ports import TraceStore

pytestmark = pytest.mark.integration

_EXAMPLES = Path(__file__).parents[4] / "libs/pml_common/examples"


async def test_a_direct_call_is_traced_once_and_nothing_is_learned(
    trace_store: TraceStore,
) -> None:
    example = json.loads((_EXAMPLES / "evt.gateway.call-ended.v1.json").read_text(encoding="utf-8"))
    ended = CallEnded.model_validate(example)
    for calls in ([ended], [ended]):
        handled = await on_calls_ended(calls, trace_store)
        assert not any(handled.facts.values())
    query = ListTraces(scope=ended.scope, workflow_id=ended.workflow_id)
    (kept,) = (await on_list_traces(query, trace_store)).traces
    assert (kept.trace_id, kept.priority) == (ended.run.trace_id, 0.0)
    assert kept.task_results == ended.run.task_results
    async with trace_store.batch([], "another") as batch:
        capability = ended.scope, ended.run.capability.capability_id
        known = await batch.experience_of({capability: ended.run.capability})
    assert known[capability].revision == 0
