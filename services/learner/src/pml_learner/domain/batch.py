"""Learning from several runs at once: the messages that follow, once for each capability."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from pml_common.contracts import ids
from pml_common.contracts.base import Event
from pml_common.contracts.capability import CapabilityIdentity
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.learner import EdgesObserved, ObservedCall, ObservedEdge
from pml_learner.domain.edges import observed_edges
from pml_learner.domain.lesson import Experience, Lesson, ScopedCapability, learn
from pml_learner.domain.nested_runs import observed_calls, own_runs
from pml_learner.domain.temporal_difference import TdRule


@dataclass(frozen=True)
class _Shown:
    """The relations that one run showed."""

    run: RunFinished
    edges: Sequence[ObservedEdge]
    calls: frozenset[tuple[UUID, UUID]]


def capabilities_of(runs: Iterable[RunFinished]) -> Mapping[ScopedCapability, CapabilityIdentity]:
    """The capabilities to learn about."""
    return {
        (run.scope, capability.capability_id): capability
        for run in runs
        for capability in (run.capability, *(call.capability for call in run.nested))
    }


def lessons_of(
    before: Mapping[ScopedCapability, Experience], runs: Sequence[RunFinished], rule: TdRule
) -> Mapping[UUID, Sequence[Lesson]]:
    """Learn from each run and the capabilities it called, callers first, in order; the result is by
    the id of `run-finished`. `before` has the experience of each capability."""
    known = dict(before)
    lessons: dict[UUID, list[Lesson]] = {run.event_id: [] for run in runs}
    for run in runs:
        for own_run, call in own_runs(run):
            capability = own_run.scope, own_run.capability.capability_id
            lesson = learn(known[capability], own_run, rule, call)
            lessons[run.event_id].append(lesson)
            known[capability] = lesson.experience
    return lessons


def messages_of(lessons: Mapping[UUID, Sequence[Lesson]]) -> Mapping[UUID, Sequence[Event]]:
    """Messages to publish, each once for a capability and under the last run that it follows from:
    the newest learning, and the edges and calls of the whole runs. Dry runs have none."""
    taught = {
        cause: [lesson for lesson in of_run if not lesson.run.dry_run]
        for cause, of_run in lessons.items()
    }
    newest = {
        lesson.capability: (cause, lesson) for cause, of_run in taught.items() for lesson in of_run
    }
    messages: dict[UUID, list[Event]] = {cause: [] for cause in lessons}
    for cause, lesson in newest.values():
        messages[cause].append(lesson.updated)
    for cause, observed in _edges([lesson.run for each in taught.values() for lesson in each[:1]]):
        messages[cause].append(observed)
    return messages


def _edges(runs: Sequence[RunFinished]) -> Iterable[tuple[UUID, EdgesObserved]]:
    """Yield the edges and calls that the runs of each capability showed, with the id of its last
    run that showed any."""
    shown: dict[ScopedCapability, list[_Shown]] = {}
    for run in runs:
        found = _Shown(run, observed_edges(run.task_results), observed_calls(run))
        if found.edges or found.calls:
            capability = run.scope, run.capability.capability_id
            shown.setdefault(capability, []).append(found)
    for of_capability in shown.values():
        last = of_capability[-1].run
        counts, calls = Counter[tuple[str, str]](), Counter[tuple[UUID, UUID]]()
        for each in of_capability:
            counts.update({(edge.from_tool, edge.to_tool): edge.count for edge in each.edges})
            calls.update(each.calls)
        yield (
            last.event_id,
            EdgesObserved(
                scope=last.scope,
                event_id=ids.effect_id(last.event_id, "edges-observed"),
                capability_id=last.capability.capability_id,
                workflow_id=last.workflow_id,
                edges=tuple(
                    ObservedEdge(from_tool=from_tool, to_tool=to_tool, count=count)
                    for (from_tool, to_tool), count in sorted(counts.items())
                ),
                calls=tuple(
                    ObservedCall(from_capability_id=caller, to_capability_id=called, count=count)
                    for (caller, called), count in sorted(calls.items())
                ),
                runs=len(of_capability),
            ),
        )
