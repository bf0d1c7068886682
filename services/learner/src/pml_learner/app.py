"""Composition root of the learner: message → handler."""

import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial

from pml_common.background import background, run_periodically
from pml_common.bus.errors import QueryFailed
from pml_common.bus.port import Bus, Handled
from pml_common.contracts import catalog
from pml_common.contracts.executor import RunFinished
from pml_common.health import Checks
from pml_common.storage.errors import map_unavailable
from pml_common.storage.schema import open_scoped_schema, storage_check
from pml_learner.adapters.postgres_traces import PostgresTraceStore
from pml_learner.application.relearning import delete_old_traces, relearn_stale
from pml_learner.application.replay import Replay
from pml_learner.domain.pauses import Pauses
from pml_learner.domain.replay import ReplayRule
from pml_learner.domain.retention import Retention
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.entrypoints.bus.on_call_ended import on_calls_ended
from pml_learner.entrypoints.bus.on_find_trace import on_find_trace
from pml_learner.entrypoints.bus.on_list_traces import on_list_traces
from pml_learner.entrypoints.bus.on_principal_data_deleted import on_principal_data_deleted
from pml_learner.entrypoints.bus.on_rebuild_learning import on_rebuild_learning
from pml_learner.entrypoints.bus.on_run_finished import on_runs_finished
from pml_learner.entrypoints.bus.on_usage import (
    on_give_feedback,
    on_list_feedback,
    on_list_tool_usage,
)
from pml_learner.entrypoints.bus.on_workflow_data_deleted import on_workflow_data_deleted
from pml_learner.ports import TraceStore
from pml_learner.settings import LearnerSettings

_RULE = TdRule()
_DELETE_EVERY_S = 3600.0
_DELETE_FIRST_S = 60.0
"""After its start a service has other work."""
_RELEARN_EVERY_S = 5.0
_PAUSE_S = 0.5
"""The time without a new batch after which past runs are looked at."""
_KNOW_EVERY_S = 5.0
_MONTHS_EVERY_S = 6 * 3600.0


@asynccontextmanager
async def serve(settings: LearnerSettings, bus: Bus) -> AsyncGenerator[Checks]:
    """Run the learner until the context exits."""
    async with open_scoped_schema(
        settings.postgres_dsn,
        "learner",
        "pml_learner",
        patience_s=settings.start_patience_s,
        shares=False,
    ) as pools:
        traces = PostgresTraceStore(pools, settings.learner_inline_result_bytes)
        pauses = Pauses(time.monotonic, _PAUSE_S)
        unavailable = partial(QueryFailed, "unavailable")
        await bus.serve(
            catalog.LIST_TRACES,
            map_unavailable(partial(on_list_traces, traces=traces), unavailable),
        )
        await bus.serve(
            catalog.FIND_TRACE, map_unavailable(partial(on_find_trace, traces=traces), unavailable)
        )
        await bus.serve(
            catalog.REBUILD_LEARNING,
            map_unavailable(
                partial(on_rebuild_learning, bus=bus, traces=traces, rule=_RULE), unavailable
            ),
        )
        await bus.serve(
            catalog.LIST_TOOL_USAGE,
            map_unavailable(partial(on_list_tool_usage, traces=traces), unavailable),
        )
        await bus.serve(
            catalog.GIVE_FEEDBACK,
            map_unavailable(
                partial(on_give_feedback, traces=traces, publish=bus.publish), unavailable
            ),
        )
        await bus.serve(
            catalog.LIST_FEEDBACK,
            map_unavailable(partial(on_list_feedback, traces=traces), unavailable),
        )
        await bus.consume_batches(
            catalog.LEARNER_ON_RUN_FINISHED,
            partial(live_first, pauses, partial(on_runs_finished, traces=traces, rule=_RULE)),
        )
        await bus.consume_batches(
            catalog.LEARNER_ON_CALL_ENDED, partial(on_calls_ended, traces=traces)
        )
        await bus.consume(
            catalog.LEARNER_ON_WORKFLOW_DATA_DELETED,
            partial(on_workflow_data_deleted, traces=traces, rule=_RULE),
        )
        await bus.consume(
            catalog.LEARNER_ON_PRINCIPAL_DATA_DELETED,
            partial(on_principal_data_deleted, traces=traces, rule=_RULE),
        )
        old = partial(delete_old, bus, traces, settings.retention)
        stale = partial(relearn_stale, bus, traces, _RULE)
        months = partial(make_months, bus, traces)
        works = [
            run_periodically(months, _MONTHS_EVERY_S),
            run_periodically(traces.know_months, _KNOW_EVERY_S),
            run_periodically(stale, _RELEARN_EVERY_S),
            run_periodically(old, _DELETE_EVERY_S, first_after_s=_DELETE_FIRST_S),
        ]
        if some := settings.learner_replay_per_minute:
            dice = random.Random()  # noqa: S311 - not for secrets
            replay = Replay(traces, ReplayRule(), dice, lambda: pauses.is_one)
            at_once = max(1, some // 6)
            again, every_s = partial(replay_some, replay, at_once), 60 * at_once / some
            works.append(run_periodically(again, every_s, first_after_s=_DELETE_FIRST_S))
        async with background(works):
            yield {"postgres": storage_check(pools.batch)}


async def live_first(
    pauses: Pauses,
    handler: Callable[[Sequence[RunFinished]], Awaitable[Handled]],
    runs: Sequence[RunFinished],
) -> Handled:
    """Handle new runs; no past ones are looked at meanwhile."""
    with pauses.live():
        return await handler(runs)


async def replay_some(replay: Replay, at_most: int) -> None:
    """Refresh the priorities of some past runs. Raises StorageUnavailable."""
    await replay.refresh_some(at_most)


async def make_months(bus: Bus, traces: TraceStore) -> None:
    """Make room for the traces of this month and the next. Raises StorageUnavailable."""
    now = bus.now()
    await traces.make_room(at.timestamp() * 1000 for at in (now, now + timedelta(days=31)))


async def delete_old(bus: Bus, traces: TraceStore, retention: Retention) -> None:
    """Delete the traces that are older than their scope keeps them. Raises StorageUnavailable."""
    await delete_old_traces(traces, retention, bus.now(), _RULE)
