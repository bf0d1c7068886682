"""Learning from several runs at once: the messages that follow, once for each capability."""

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from pml_common.contracts.base import Event
from pml_common.contracts.capability import CapabilityIdentity
from pml_common.contracts.executor import RunFinished
from pml_learner.domain.edge_messages import edge_messages
from pml_learner.domain.fault import faults_of
from pml_learner.domain.lesson import Experience, Lesson, ScopedCapability, learn
from pml_learner.domain.nested_runs import own_runs
from pml_learner.domain.temporal_difference import TdRule


def capabilities_of(runs: Iterable[RunFinished]) -> Mapping[ScopedCapability, CapabilityIdentity]:
    """The capabilities to learn about."""
    return {
        (run.scope, capability.capability_id): capability
        for run in runs
        for capability in (run.capability, *(call.capability for call in run.nested))
    }


def times_of(runs: Iterable[RunFinished]) -> Iterable[float]:
    """The times of the traces to store, in milliseconds."""
    return [each.started_at for run in runs for each in (run, *run.nested)]


def lessons_of(
    before: Mapping[ScopedCapability, Experience], runs: Sequence[RunFinished], rule: TdRule
) -> Mapping[UUID, Sequence[Lesson]]:
    """Learn from each run and the capabilities it called, callers first, in order; the result is by
    the id of `run-finished`. `before` has the experience of each capability."""
    known = dict(before)
    lessons: dict[UUID, list[Lesson]] = {run.event_id: [] for run in runs}
    for run in runs:
        faults = faults_of(run)
        for own_run, call in own_runs(run):
            capability = own_run.scope, own_run.capability.capability_id
            fault = faults.get(own_run.trace_id)
            lesson = learn(known[capability], own_run, rule, call, fault)
            lessons[run.event_id].append(lesson)
            known[capability] = lesson.experience
    return lessons


def messages_of(lessons: Mapping[UUID, Sequence[Lesson]]) -> Mapping[UUID, Sequence[Event]]:
    """Messages to publish, each once for a capability and under the last run that it follows from:
    the newest learning, and the relations that the whole runs show. Dry runs have none, nor have
    runs without a result, but for what they called; where a capability is to be rebuilt, its
    learning follows from that."""
    taught = {
        cause: [lesson for lesson in of_run if not (lesson.run.dry_run or lesson.run.void)]
        for cause, of_run in lessons.items()
    }
    newest = {
        lesson.capability: (cause, lesson) for cause, of_run in taught.items() for lesson in of_run
    }
    intents = _intents(lesson for of_run in taught.values() for lesson in of_run)
    messages: dict[UUID, list[Event]] = {cause: [] for cause in lessons}
    for cause, lesson in newest.values():
        if lesson.is_taught:
            intent = intents.get(lesson.capability)
            messages[cause].append(lesson.updated.model_copy(update={"intent": intent}))
    first = (lesson for of_run in taught.values() for lesson in of_run[:1])
    whole_runs = [lesson.run for lesson in first if lesson.call is None]
    for cause, observed in edge_messages(whole_runs):
        messages[cause].append(observed)
    return messages


def _intents(lessons: Iterable[Lesson]) -> Mapping[ScopedCapability, str]:
    """Return the intent of the first run of each program that succeeded and had one. Of a call by
    name it is the caller's: it does not say what the capability is for."""
    intents: dict[ScopedCapability, str] = {}
    for lesson in lessons:
        run = lesson.run
        if run.success and run.called_as is None and run.intent:
            intents.setdefault(lesson.capability, run.intent)
    return intents
