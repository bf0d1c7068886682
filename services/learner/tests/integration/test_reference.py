"""Live learning and rebuilds against the reference implementation, in whatever order runs come."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from libs.pml_local.tests.support.databases import SharedDatabase
from pml_common.contracts.error import Fault
from pml_common.contracts.learner import ExecutionTrace
from pml_common.storage.scoped import ScopedPools
from pml_learner.adapters.postgres_traces import PostgresTraceStore
from pml_learner.application.relearning import rebuild_step
from pml_learner.domain.lesson import Experience
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.entrypoints.bus.on_run_finished import on_runs_finished
from pml_learner.ports import TraceStore
from services.learner.tests.support.builders import SCOPE, finished_run
from services.learner.tests.support.ended_runs import run_that_ended
from services.learner.tests.support.reference import Expected, expected

pytestmark = pytest.mark.integration
CAPABILITY = SCOPE, finished_run().capability.capability_id
RULE = TdRule()


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.booleans(),
            st.sampled_from([None, None, "caller", "environment"]),
            st.sampled_from([0, 0, 0, 0, 1, *range(11)]),
        ),
        min_size=1,
        max_size=40,
    ),
    st.data(),
)
async def test_any_interleaving_duplication_and_redelivery_teaches_what_the_reference_says(
    learner_database: SharedDatabase,
    learner_pool: ScopedPools,
    ends: list[tuple[bool, Fault | None, int]],
    data: st.DataObject,
) -> None:
    runs = [
        run_that_ended(number, success=success, fault=fault, who=who)
        for number, (success, fault, who) in enumerate(ends)
    ]
    order = data.draw(st.permutations(runs))
    again = data.draw(st.lists(st.sampled_from(runs), max_size=9))
    delivered = data.draw(st.permutations([*order, *again]))
    await learner_database.empty()
    store = PostgresTraceStore(learner_pool)
    left = list(delivered)
    while left:
        size = data.draw(st.integers(1, len(left)))
        batch = {run.event_id: run for run in left[:size]}
        await on_runs_finished(list(batch.values()), store, RULE)
        left = left[size:]
        if data.draw(st.booleans()):
            await rebuild_step(store, CAPABILITY, RULE, 4)
    live, stored = await _learned(store)
    _assert_equal(live, expected(stored))
    assert live.usage.count == len(runs)
    stepped = await rebuild_step(store, CAPABILITY, RULE, 3)
    while stepped is not None and not stepped[0].is_done:
        stepped = await rebuild_step(store, CAPABILITY, RULE, 3)
    assert (await _learned(store))[0] == live


async def _learned(
    store: TraceStore,
) -> tuple[Experience, Sequence[tuple[ExecutionTrace, str]]]:
    """Return what was learned, and the traces with their principals in the order of positions."""
    async with store.relearning(CAPABILITY) as row:
        assert row is not None
        known = row.learned.experience
        stored = await row.traces(0, known.position, known.position)
        return known, [(each.trace, each.principal) for each in stored]


def _assert_equal(live: Experience, reference: Expected) -> None:
    usage, learning = live.usage, live.learning
    assert (usage.count, usage.success_count, usage.success_streak) == (
        reference.count,
        reference.successes,
        reference.streak,
    )
    assert (usage.caller_faults, usage.environment_faults) == (
        reference.caller_faults,
        reference.environment_faults,
    )
    assert usage.value == pytest.approx(reference.value)
    assert {
        each.path: (each.count, pytest.approx(each.success_rate)) for each in learning.paths
    } == (reference.paths)
    assert {
        (decision.node_id, name): (each.count, pytest.approx(each.success_rate))
        for decision in learning.decision_stats
        for name, each in decision.outcomes.items()
    } == reference.decisions
