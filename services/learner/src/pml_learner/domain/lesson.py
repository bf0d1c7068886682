"""Learning from one run."""

from dataclasses import dataclass, field
from uuid import UUID

from pml_common.contracts import ids
from pml_common.contracts.capability import Learning, Usage
from pml_common.contracts.executor import NestedRun, RunFinished
from pml_common.contracts.learner import ExecutionTrace, LearningUpdated
from pml_common.contracts.scope import Scope
from pml_learner.domain import temporal_difference
from pml_learner.domain.priority import priority
from pml_learner.domain.temporal_difference import TdRule, path_stats

ScopedCapability = tuple[Scope, UUID]
"""A capability's scope and id."""


@dataclass(frozen=True)
class Experience:
    """Everything learned from a capability's runs so far."""

    usage: Usage = field(default_factory=Usage)
    learning: Learning = field(default_factory=Learning)

    @property
    def revision(self) -> int:
        """Number of runs learned from."""
        return self.usage.count


@dataclass(frozen=True)
class Lesson:
    """One run, its priority, and the experience including it; `call` is the capability call that
    started it, if it ran inside another run."""

    run: RunFinished
    priority: float
    experience: Experience
    call: NestedRun | None = None

    @property
    def trace(self) -> ExecutionTrace:
        """The trace to store."""
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
            discovery_id=run.discovery_id if call is None else None,
        )

    @property
    def capability(self) -> ScopedCapability:
        """The capability that ran, in its scope."""
        return self.run.scope, self.run.capability.capability_id

    @property
    def updated(self) -> LearningUpdated:
        """The message about the capability's statistics including the run."""
        run = self.run
        return LearningUpdated(
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


def untaught(before: Experience, run: RunFinished, call: NestedRun | None = None) -> Lesson:
    """Return the lesson of a run whose trace is stored, and from which nothing is learned."""
    return Lesson(run=run, priority=0.0, experience=before, call=call)


def learn(
    before: Experience, run: RunFinished, rule: TdRule, call: NestedRun | None = None
) -> Lesson:
    """Learn from one run without its nested runs; nothing from a dry run (mocked results)."""
    if run.dry_run:
        return untaught(before, run, call)
    duration_ms = max(0.0, run.duration_ms)  # negative after a clock was set back
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
        experience=Experience(_with_run(before.usage, run.success, duration_ms), learning),
        call=call,
    )


def _with_run(usage: Usage, success: bool, duration_ms: float) -> Usage:
    count = usage.count + 1
    return Usage(
        count=count,
        success_count=usage.success_count + int(success),
        success_streak=usage.success_streak + 1 if success else 0,
        mean_duration_ms=usage.mean_duration_ms + (duration_ms - usage.mean_duration_ms) / count,
    )
