"""Counts of relations that redelivered runs show."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libs.pml_local.tests.support.databases import SharedDatabase
from pml_common.contracts.learner import EdgesObserved
from pml_common.storage.scoped import ScopedPools
from pml_learner.adapters.postgres_traces import PostgresTraceStore
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.entrypoints.bus.on_run_finished import on_runs_finished
from services.learner.tests.support.relations import counts_of, edges_observed, nesting

pytestmark = pytest.mark.integration


@settings(max_examples=50)
@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=6),
    st.lists(st.integers(0, 23), max_size=16),
    st.randoms(use_true_random=False),
)
async def test_counts_are_equal_under_any_order_duplication_and_redelivery(
    learner_database: SharedDatabase,
    learner_pool: ScopedPools,
    times: list[int],
    again: list[int],
    order: random.Random,
) -> None:
    runs = [nesting(times=each, principal=f"agent-{at % 3}") for at, each in enumerate(times)]
    once = counts_of([each for run in runs for each in edges_observed(run)])
    delivered = [*runs, *(runs[at % len(runs)] for at in again)]
    order.shuffle(delivered)
    await learner_database.empty()
    traces, published = PostgresTraceStore(learner_pool), list[EdgesObserved]()
    while delivered:
        size = order.randint(1, len(delivered))
        batch = list({run.event_id: run for run in delivered[:size]}.values())
        delivered = delivered[size:]
        handled = await on_runs_finished(batch, traces, TdRule())
        published += [
            each
            for facts in handled.facts.values()
            for each in facts
            if isinstance(each, EdgesObserved)
        ]
    assert counts_of(published) == once
