"""Learning from a run's capability calls as if each had been a run of its own."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from pml_common.contracts import ids
from pml_common.contracts.base import Event
from pml_common.contracts.capability import CapabilityIdentity
from pml_common.contracts.executor import NestedRun, RunFinished
from pml_common.contracts.learner import LearningUpdated
from pml_learner.domain.lesson import Experience, Lesson, learn
from pml_learner.domain.temporal_difference import TdRule


def capabilities_of(run: RunFinished) -> tuple[CapabilityIdentity, ...]:
    """The capabilities to learn about, in an order that is the same for all runs."""
    capabilities = (run.capability, *(call.capability for call in run.nested))
    found = {capability.capability_id: capability for capability in capabilities}
    return tuple(found[key] for key in sorted(found))


def lessons_of(
    before: Mapping[UUID, Experience], run: RunFinished, rule: TdRule
) -> tuple[Lesson, ...]:
    """Learn from the run, then from each call, callers first; `before` is by capability id."""
    known = dict(before)
    lessons: list[Lesson] = []
    for call, own_run in ((None, run), *((call, _as_own_run(run, call)) for call in run.nested)):
        capability = own_run.capability.capability_id
        lessons.append(learn(known[capability], own_run, rule, call))
        known[capability] = lessons[-1].experience
    return tuple(lessons)


def messages_of(lessons: Sequence[Lesson]) -> tuple[Event, ...]:
    """Messages to publish: each capability's newest learning, and the edges of the whole run."""
    messages = [message for lesson in lessons for message in lesson.messages]
    updates = [message for message in messages if isinstance(message, LearningUpdated)]
    newest = {update.capability_id: update for update in updates}
    others = (message for message in messages if not isinstance(message, LearningUpdated))
    return (*newest.values(), *others)


def _as_own_run(run: RunFinished, call: NestedRun) -> RunFinished:
    """Convert a call into the run that it would have been by itself."""
    prefix = f"{call.node_id}/"
    tasks = tuple(
        task.model_copy(update={"node_id": task.node_id.removeprefix(prefix)})
        for task in run.task_results
        if task.parent_trace_id == call.trace_id
    )
    return run.model_copy(
        update={
            "event_id": ids.effect_id(run.event_id, f"nested/{call.trace_id}"),
            "capability": call.capability,
            "intent": None,
            "success": call.success,
            "result": call.result,
            "error": call.error,
            "executed_path": call.executed_path,
            "decisions": call.decisions,
            "task_results": tasks,
            "nested": (),
            "trace_id": call.trace_id,
            "started_at": call.started_at,
            "duration_ms": call.duration_ms,
        }
    )
