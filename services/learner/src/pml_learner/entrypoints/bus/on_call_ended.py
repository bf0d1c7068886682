"""Handles `call-ended`."""

from collections.abc import Sequence

from pml_common.bus.port import Handled
from pml_common.contracts import catalog
from pml_common.contracts.direct_call import CallEnded
from pml_learner.domain.batch import capabilities_of, times_of
from pml_learner.domain.fault import faults_of
from pml_learner.domain.lesson import untaught
from pml_learner.domain.tool_usage import calls_of
from pml_learner.ports import TraceStore

_CONSUMER = catalog.LEARNER_ON_CALL_ENDED.durable


async def on_calls_ended(calls: Sequence[CallEnded], traces: TraceStore) -> Handled:
    """Store the traces of direct calls, and count them; nothing is learned, nothing follows."""
    await traces.make_room(times_of(call.run for call in calls))
    async with traces.batch([call.event_id for call in calls], _CONSUMER) as batch:
        new = [call.run for call in calls if call.event_id not in batch.replayed]
        before = await batch.experience_of(capabilities_of(new))
        known = ((before[run.scope, run.capability.capability_id], run) for run in new)
        lessons = [
            untaught(experience, run, fault=faults_of(run).get(run.trace_id))
            for experience, run in known
        ]
        await batch.save(lessons, calls_of(new))
        return Handled(batch.conclude({call.event_id: () for call in calls}))
