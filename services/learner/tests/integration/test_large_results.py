"""Results that are too large for their traces."""

import pytest

from pml_common.contracts.learner import FindTrace
from pml_common.storage.scoped import ScopedPools
from pml_learner.adapters.postgres_traces import PostgresTraceStore
from pml_learner.domain.large_results import trace_of
from pml_learner.domain.lesson import Experience, learn
from pml_learner.domain.nested_runs import own_runs
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.entrypoints.bus.on_run_finished import on_runs_finished
from pml_learner.ports import TraceStore
from services.learner.tests.support.builders import SCOPE
from services.learner.tests.support.large_results import BIG, run_with

pytestmark = pytest.mark.integration


async def test_a_store_keeps_the_reference(trace_store: TraceStore) -> None:
    run = run_with(BIG, "small")
    await on_runs_finished([run], trace_store, TdRule())
    stored = [
        await trace_store.trace(FindTrace(scope=SCOPE, trace_id=each))
        for each in (run.trace_id, run.nested[0].trace_id)
    ]
    expected = [
        trace_of(learn(Experience(), each, TdRule(), call), 4096) for each, call in own_runs(run)
    ]
    assert stored == expected
    assert [len(trace.large_results) for trace in expected] == [2, 0]


async def test_the_limit_is_a_setting(trace_store: TraceStore, learner_pool: ScopedPools) -> None:
    run, store = run_with("small"), PostgresTraceStore(learner_pool, most_bytes=6)
    await on_runs_finished([run], store, TdRule())
    found = await store.trace(FindTrace(scope=SCOPE, trace_id=run.trace_id))
    assert found is not None
    assert len(found.large_results) == 2
