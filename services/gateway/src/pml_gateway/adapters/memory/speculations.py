"""Runs of guesses in memory; pass the same contract suite as those in Postgres."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from typing_extensions import override

from pml_common.contracts.scope import Scope
from pml_gateway.adapters.memory.workflows import MemoryWorkflowStore
from pml_gateway.domain.api.speculation_threshold import (
    MOST_PER_HOUR,
    MOST_READ,
    Opinion,
    SpeculatedRun,
    hour_of,
)
from pml_gateway.ports import SpeculatedRuns


class MemorySpeculatedRuns(SpeculatedRuns):
    """The ends of the runs are read in `workflows`."""

    def __init__(self, workflows: MemoryWorkflowStore) -> None:
        self._workflows = workflows
        self._runs: dict[tuple[Scope, UUID], SpeculatedRun] = {}

    @override
    async def add(self, scope: Scope, workflow_id: UUID, principal: str, at: datetime) -> None:
        same_hour = [
            run
            for (owner, _), run in self._runs.items()
            if (owner, run.principal, hour_of(run.at)) == (scope, principal, hour_of(at))
        ]
        if len(same_hour) < MOST_PER_HOUR:
            run = SpeculatedRun(workflow_id, principal, at)
            self._runs.setdefault((scope, workflow_id), run)

    @override
    async def judge(self, scope: Scope, workflow_id: UUID, opinion: Opinion) -> None:
        run = self._runs.get((scope, workflow_id))
        same_hour = [
            each
            for (owner, other), judged in self._runs.items()
            if owner == scope and other != workflow_id
            for each in judged.opinions
            if (each.principal, hour_of(each.at)) == (opinion.principal, hour_of(opinion.at))
        ]
        if run is not None and len(same_hour) < MOST_PER_HOUR:
            others = (each for each in run.opinions if each.principal != opinion.principal)
            self._runs[scope, workflow_id] = replace(run, opinions=(*others, opinion))

    @override
    async def since(self, scope: Scope, at: datetime) -> Sequence[SpeculatedRun]:
        found = [run for (owner, _), run in self._runs.items() if owner == scope and run.at >= at]
        newest = sorted(found, key=lambda run: run.at, reverse=True)[:MOST_READ]
        return [self._with_end(scope, run) for run in newest]

    def _with_end(self, scope: Scope, run: SpeculatedRun) -> SpeculatedRun:
        workflow = self._workflows.kept.get((scope, run.workflow_id))
        if workflow is None:
            return run
        error = workflow.run.error if workflow.run is not None else workflow.error
        return replace(run, state=workflow.state, error=error)

    def erase(self, scope: Scope, workflow_id: UUID) -> None:
        """Delete the run of a workflow."""
        self._runs.pop((scope, workflow_id), None)

    @override
    async def forget(self, before: datetime) -> None:
        self._runs = {key: run for key, run in self._runs.items() if run.at >= before}
