"""A run ended: keep its trace and learn from it."""

from collections.abc import Sequence

from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.executor import RunFinished
from pml_learner.domain.lesson import learn
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.ports import TraceStore

_CONSUMER = catalog.LEARNER_ON_RUN_FINISHED.durable


async def on_run_finished(run: RunFinished, traces: TraceStore, rule: TdRule) -> Sequence[Message]:
    """Learn from one run; a redelivery states the same facts and learns nothing."""
    async with traces.once(run.event_id, _CONSUMER) as handling:
        if handling.replayed is not None:
            return handling.replayed
        before = await handling.experience_of(run.scope, run.capability)
        lesson = learn(before, run, rule)
        await handling.save(lesson)
        return handling.conclude(lesson.facts)
