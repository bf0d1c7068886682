"""What one run teaches."""

from dataclasses import dataclass, field

from pml_common.contracts import ids
from pml_common.contracts.base import Event
from pml_common.contracts.capability import Learning, Usage
from pml_common.contracts.executor import NestedRun, RunFinished
from pml_common.contracts.learner import EdgesObserved, ExecutionTrace, LearningUpdated
from pml_learner.domain import temporal_difference
from pml_learner.domain.edges import observed_edges
from pml_learner.domain.priority import priority
from pml_learner.domain.temporal_difference import TdRule, path_stats


@dataclass(frozen=True)
class Experience:
    """All that a capability's runs taught so far."""

    usage: Usage = field(default_factory=Usage)
    learning: Learning = field(default_factory=Learning)

    @property
    def revision(self) -> int:
        """How many runs were learned from."""
        return self.usage.count


@dataclass(frozen=True)
class Lesson:
    """One run, how much it surprised, and the experience with it included; `call` is the call of
    a capability that it was, if it ran inside another."""

    run: RunFinished
    priority: float
    experience: Experience
    call: NestedRun | None = None

    @property
    def trace(self) -> ExecutionTrace:
        """The record to keep."""
        run, call = self.run, self.call
        return ExecutionTrace(
            trace_id=run.trace_id,
            parent_trace_id=call.parent_trace_id if call else None,
            node_id=call.node_id if call else None,
            name=call.name if call else None,
            capability_id=run.capability.capability_id,
            workflow_id=run.workflow_id,
            intent=run.intent,
            executed_at=run.started_at,
            success=run.success,
            duration_ms=run.duration_ms,
            result=run.result,
            error=run.error,
            executed_path=run.executed_path,
            decisions=run.decisions,
            task_results=tuple(
                task for task in run.task_results if task.parent_trace_id in (None, run.trace_id)
            ),
            priority=self.priority,
            dry_run=run.dry_run,
        )

    @property
    def facts(self) -> tuple[Event, ...]:
        """What to publish; no edges, no `EdgesObserved`; of a dry run, nothing."""
        run = self.run
        if run.dry_run:
            return ()
        updated = LearningUpdated(
            scope=run.scope,
            event_id=ids.effect_id(run.event_id, "learning-updated"),
            capability_id=run.capability.capability_id,
            workflow_id=run.workflow_id,
            trace_id=run.trace_id,
            revision=self.experience.revision,
            priority=self.priority,
            usage=self.experience.usage,
            learning=self.experience.learning,
        )
        edges = observed_edges(run.task_results) if self.call is None else ()
        if not edges:
            return (updated,)
        observed = EdgesObserved(
            scope=run.scope,
            event_id=ids.effect_id(run.event_id, "edges-observed"),
            capability_id=run.capability.capability_id,
            workflow_id=run.workflow_id,
            edges=edges,
        )
        return (updated, observed)


def learn(
    before: Experience, run: RunFinished, rule: TdRule, call: NestedRun | None = None
) -> Lesson:
    """Learn from one run, of itself alone; from a dry run, nothing: mocks are not the world."""
    if run.dry_run:
        return Lesson(run=run, priority=0.0, experience=before, call=call)
    duration_ms = max(0.0, run.duration_ms)  # a clock set back makes a span negative
    known = path_stats(before.learning, run.executed_path)
    learning = temporal_difference.update(
        before.learning,
        run.executed_path,
        run.decisions,
        success=run.success,
        duration_ms=duration_ms,
        rule=rule,
    )
    return Lesson(
        run=run,
        priority=priority(known, success=run.success, duration_ms=duration_ms),
        experience=Experience(_used(before.usage, run.success, duration_ms), learning),
        call=call,
    )


def _used(usage: Usage, success: bool, duration_ms: float) -> Usage:
    count = usage.count + 1
    return Usage(
        count=count,
        success_count=usage.success_count + int(success),
        mean_duration_ms=usage.mean_duration_ms + (duration_ms - usage.mean_duration_ms) / count,
    )
