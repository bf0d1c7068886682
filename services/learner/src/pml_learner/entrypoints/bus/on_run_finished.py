"""Handles `run-finished`."""

from collections.abc import Sequence

from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.executor import RunFinished
from pml_learner.domain.nested_runs import capabilities_of, lessons_of, messages_of
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.ports import TraceStore

_CONSUMER = catalog.LEARNER_ON_RUN_FINISHED.durable


async def on_run_finished(run: RunFinished, traces: TraceStore, rule: TdRule) -> Sequence[Message]:
    """Learn from a run and the capabilities it called; a redelivery publishes the same messages and
    learns nothing."""
    async with traces.once(run.event_id, _CONSUMER) as transaction:
        if transaction.replayed is not None:
            return transaction.replayed
        before = {
            capability.capability_id: await transaction.experience_of(run.scope, capability)
            for capability in capabilities_of(run)
        }
        lessons = lessons_of(before, run, rule)
        for lesson in lessons:
            await transaction.save(lesson)
        return transaction.conclude(messages_of(lessons))
