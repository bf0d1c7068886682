"""Handles `run-finished`."""

from collections.abc import Sequence

from pml_common.bus.port import Handled
from pml_common.contracts import catalog
from pml_common.contracts.executor import RunFinished
from pml_learner.application.learning_measures import measure_learned
from pml_learner.domain.batch import capabilities_of, lessons_of, messages_of, times_of
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.domain.tool_usage import calls_of
from pml_learner.domain.uses import uses_observed
from pml_learner.ports import TraceStore

_CONSUMER = catalog.LEARNER_ON_RUN_FINISHED.durable


async def on_runs_finished(
    runs: Sequence[RunFinished], traces: TraceStore, rule: TdRule
) -> Handled:
    """Learn from runs and the capabilities they called, count their calls, and tell which intents
    they served; a redelivered run publishes the same messages, teaches nothing and counts for
    nothing. One whose data was deleted teaches nothing, and shows nothing."""
    await traces.make_room(times_of(runs))
    async with traces.batch([run.event_id for run in runs], _CONSUMER) as batch:
        new = [run for run in runs if run.event_id not in batch.replayed]
        deleted = await batch.deleted_among({(run.scope, run.workflow_id) for run in new})
        kept = [run for run in new if (run.scope, run.workflow_id) not in deleted]
        before = await batch.experience_of(capabilities_of(kept))
        lessons = lessons_of(before, kept, rule)
        taught = [lesson for of_run in lessons.values() for lesson in of_run]
        await batch.save(taught, calls_of(new))
        used = uses_observed(kept)
        facts = {
            cause: [*messages, *([used[cause]] if cause in used else [])]
            for cause, messages in messages_of(lessons).items()
        }
        handled = Handled(batch.conclude(facts))
    measure_learned(len(runs), new, kept)
    return handled
