"""A run that called capabilities teaches about each of them as if it had run by itself."""

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
    """What the run teaches about, in an order that is the same for all runs."""
    taught = (run.capability, *(call.capability for call in run.nested))
    found = {capability.capability_id: capability for capability in taught}
    return tuple(found[key] for key in sorted(found))


def lessons_of(
    before: Mapping[UUID, Experience], run: RunFinished, rule: TdRule
) -> tuple[Lesson, ...]:
    """The run's own lesson, then one of each call, callers first; `before` by capability id."""
    known = dict(before)
    lessons: list[Lesson] = []
    for call, alone in ((None, run), *((call, _alone(run, call)) for call in run.nested)):
        capability = alone.capability.capability_id
        lessons.append(learn(known[capability], alone, rule, call))
        known[capability] = lessons[-1].experience
    return tuple(lessons)


def facts_of(lessons: Sequence[Lesson]) -> tuple[Event, ...]:
    """What to publish: of each capability the newest learning, and the edges of the whole run."""
    facts = [fact for lesson in lessons for fact in lesson.facts]
    newest = {fact.capability_id: fact for fact in facts if isinstance(fact, LearningUpdated)}
    others = (fact for fact in facts if not isinstance(fact, LearningUpdated))
    return (*newest.values(), *others)


def _alone(run: RunFinished, call: NestedRun) -> RunFinished:
    """A call as the run that it would have been by itself."""
    way = f"{call.node_id}/"
    tasks = tuple(
        task.model_copy(update={"node_id": task.node_id.removeprefix(way)})
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
