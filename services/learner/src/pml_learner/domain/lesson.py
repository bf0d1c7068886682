"""Learning from one run."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from uuid import UUID

from pml_common.contracts import ids
from pml_common.contracts.capability import Learning, Usage
from pml_common.contracts.error import Fault
from pml_common.contracts.executor import NestedRun, RunFinished
from pml_common.contracts.learner import ExecutionTrace, LearningUpdated
from pml_common.contracts.scope import Scope
from pml_learner.domain.outcome import outcome_of_run
from pml_learner.domain.priority import priority
from pml_learner.domain.state import State, fold, learning_of, path_stats, usage_of
from pml_learner.domain.temporal_difference import TdRule

ScopedCapability = tuple[Scope, UUID]
"""A capability's scope and id."""


@dataclass(frozen=True)
class Experience:
    """Everything learned from a capability's runs so far, by the rules of `rule_version`.

    `position` is that of its last trace, `base_position` that of the last one whose lesson cannot
    be recomputed. `rebuilds` is the number of rebuilds that changed what was learned. `new_base` is
    a base to be stored: what was learned before there were positions.
    """

    state: State = field(default_factory=State)
    position: int = 0
    base_position: int = 0
    rule_version: int = 0
    rebuilds: int = 0
    new_base: State | None = None

    def is_current(self, rule: TdRule) -> bool:
        """Whether the state has the lessons of all traces, by this rule alone. What a base has
        stays as it was learned."""
        is_ours = self.rule_version == rule.version or self.position == self.base_position
        return is_ours and self.state.counts.runs == self.position

    @property
    def revision(self) -> int:
        """A number that grows with every change."""
        return self.position + self.rebuilds

    @cached_property
    def usage(self) -> Usage:
        """The counts as they are published."""
        return usage_of(self.state)

    @cached_property
    def learning(self) -> Learning:
        """The learned statistics as they are published."""
        return learning_of(self.state)


@dataclass(frozen=True)
class Lesson:
    """One run, the fault if it failed, its priority, and the experience including it; `call` is the
    capability call that started it, if it ran inside another run. `position` is that of its trace;
    None where nothing is learned. `is_taught`: the experience has its lesson; otherwise a rebuild
    will teach it."""

    run: RunFinished
    priority: float
    experience: Experience
    call: NestedRun | None = None
    fault: Fault | None = None
    position: int | None = None
    is_taught: bool = False

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
            fault=self.fault,
            position=self.position,
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


def untaught(
    before: Experience, run: RunFinished, call: NestedRun | None = None, fault: Fault | None = None
) -> Lesson:
    """Return the lesson of a run whose trace is stored, and from which nothing is learned."""
    return Lesson(run=run, priority=0.0, experience=before, call=call, fault=fault)


def learn(
    before: Experience,
    run: RunFinished,
    rule: TdRule,
    call: NestedRun | None = None,
    fault: Fault | None = None,
) -> Lesson:
    """Learn from one run without its nested runs; nothing from a dry run (mocked results), and from
    one without a result."""
    if run.dry_run or run.void:
        return untaught(before, run, call, fault)
    outcome = outcome_of_run(run, fault)
    known = path_stats(before.state, outcome.path)
    position, is_current = before.position + 1, before.is_current(rule)
    after = replace(before, position=position)
    if is_current:
        taught = fold(before.state, outcome, rule)
        after = replace(after, state=taught, rule_version=rule.version)
    surprise = priority(known, success=run.success, duration_ms=outcome.duration_ms)
    return Lesson(
        run=run,
        priority=0.0 if fault in ("caller", "environment") else surprise,
        experience=after,
        call=call,
        fault=fault,
        position=position,
        is_taught=is_current,
    )
