"""Rows of processes that know no positions: what they learned becomes the base."""

import json

import pytest

from pml_common.storage.pool import transaction
from pml_common.storage.schema import open_scoped_schema
from pml_learner.adapters.postgres_traces import PostgresTraceStore
from pml_learner.application.relearning import fold_away, rebuild_step
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.entrypoints.bus.on_run_finished import on_runs_finished
from services.learner.tests.support.builders import CODE_HASH, READ, SCOPE, finished_run
from services.learner.tests.support.outcomes import OLD_LEARNING

pytestmark = pytest.mark.integration
RULE = TdRule()
CAPABILITY = SCOPE, finished_run().capability.capability_id


async def test_old_rows_and_rows_that_an_old_process_changed_are_adopted(
    postgres_dsn: str,
) -> None:
    async with open_scoped_schema(postgres_dsn, "learner", "pml_learner") as pool:
        store, old_learning = PostgresTraceStore(pool), OLD_LEARNING.model_dump_json()
        async with transaction(pool.batch) as session:
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

        async with transaction(pool.batch) as session:  # a process of the version before learns
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
