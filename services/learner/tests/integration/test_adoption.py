"""Rows of processes that know no positions: what they learned becomes the base."""

import json

import pytest

from pml_common.contracts.capability import (
    DecisionStats,
    Learning,
    OutcomeStats,
    PathStats,
    Usage,
)
from pml_common.storage.pool import transaction
from pml_common.storage.schema import open_schema
from pml_learner.adapters.postgres_traces import PostgresTraceStore
from pml_learner.application.relearning import fold_away, rebuild_step
from pml_learner.domain.stored_state import adopted
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.entrypoints.bus.on_run_finished import on_runs_finished
from services.learner.tests.support.builders import CODE_HASH, READ, SCOPE, finished_run
from services.learner.tests.support.outcomes import HOUR, outcome, taught

RULE = TdRule()
CAPABILITY = SCOPE, finished_run().capability.capability_id
OLD_USAGE = Usage(count=2, success_count=2, success_streak=2, mean_duration_ms=12.0)
OLD_LEARNING = Learning(
    paths=(PathStats(path=READ, count=2, success_rate=0.595, mean_duration_ms=12.0),),
    dominant_path=READ,
    decision_stats=(
        DecisionStats(node_id="d1", outcomes={"true": OutcomeStats(count=1, success_rate=0.45)}),
    ),
)


def test_a_path_that_never_failed_is_worth_1_without_the_value_it_began_from() -> None:
    state = adopted(OLD_USAGE, OLD_LEARNING)
    assert state.paths[READ].estimate.value == pytest.approx(1.0)
    assert state.outcomes["d1", "true"].value == pytest.approx(0.0)
    assert (state.overall.value, state.overall.seen, state.counts.runs) == (1.0, 2, 2)
    assert adopted(Usage(), Learning()).overall.interval() == (0.0, 1.0)


def test_what_nobody_knows_who_taught_yields_to_what_is_known() -> None:
    old = Usage(count=90, success_count=90, success_streak=90)
    state = adopted(old, Learning())
    values = list[float]()
    for number in range(20):
        state = taught([outcome(success=False, hour=HOUR + number // 5)], state)
        values.append(state.overall.value)
    assert values == pytest.approx([1 - number / 20 for number in range(1, 21)])
    assert len(state.overall.voices) == 1


@pytest.mark.integration
async def test_old_rows_and_rows_that_an_old_process_changed_are_adopted(
    postgres_dsn: str,
) -> None:
    async with open_schema(postgres_dsn, "learner", "pml_learner") as pool:
        store, old_learning = PostgresTraceStore(pool), OLD_LEARNING.model_dump_json()
        async with transaction(pool) as session:
            await session.execute(
                "INSERT INTO learning (org, project, capability_id, code_hash, run_count, "
                "success_count, success_streak, mean_duration_ms, learning) "
                "VALUES ($1, $2, $3, $4, 2, 2, 2, 12.0, $5::json)",
                SCOPE.org,
                SCOPE.project,
                CAPABILITY[1],
                CODE_HASH,
                old_learning,
            )
        (facts,) = (await on_runs_finished([finished_run()], store, RULE)).facts.values()
        dumped = json.loads(facts[0].model_dump_json())
        assert (dumped["revision"], dumped["usage"]["count"]) == (3, 3)
        assert dumped["learning"]["paths"][0]["success_rate"] == pytest.approx(1.0)
        async with store.relearning(CAPABILITY) as row:
            assert row is not None
            assert (row.learned.base_position, row.learned.base.counts.runs) == (2, 2)
            live = row.learned.experience
        stepped = await rebuild_step(store, CAPABILITY, RULE)
        assert stepped is not None
        assert (stepped[0].is_done, stepped[0].changed, stepped[1]) == (True, False, 1)

        async with transaction(pool) as session:  # a process of the version before learns
            await session.execute("UPDATE learning SET run_count = 4, success_count = 3")
        await on_runs_finished([finished_run()], store, RULE)
        async with store.relearning(CAPABILITY) as row:
            assert row is not None
            known = row.learned.experience
            assert (known.position, known.base_position, known.usage.success_count) == (5, 4, 4)
            assert known.state.paths[READ].estimate.seen == live.state.paths[READ].estimate.seen + 1
        await fold_away(store, CAPABILITY, 5, RULE)
        async with store.relearning(CAPABILITY) as row:
            assert row is not None
            assert row.learned.base == row.learned.experience.state == known.state
