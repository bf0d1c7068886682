"""The first step of a workflow: its analysis and the decision, before it is stored."""

from dataclasses import dataclass

from pml_common.bus.errors import Retryable
from pml_common.contracts.analyzer import AnalysisRejected
from pml_gateway.application.rulings import Rulings
from pml_gateway.application.workflow_service import WorkflowService
from pml_gateway.domain.workflow.events import WorkflowEvent
from pml_gateway.domain.workflow.workflow import Step, Workflow
from pml_gateway.ports import Analyses


@dataclass(frozen=True)
class FirstStep:
    """Takes the first steps of workflows."""

    workflows: WorkflowService
    analyses: Analyses
    rulings: Rulings

    async def of(self, new: Workflow) -> Step:
        """Return a new workflow after its analysis, and what follows from it. Where something that
        the decision needs is away, the workflow is only requested: it is stored, and analysed when
        that is back."""
        event = await self._event(new)
        if event is not None:
            after, effects = self.workflows.advance(new, event)
            if after is not new:
                return after, effects
        return new, (new.requested,)

    async def _event(self, new: Workflow) -> WorkflowEvent | None:
        outcome = await self.analyses.of(new.requested)
        if outcome is None:
            return None
        if isinstance(outcome, AnalysisRejected):
            return self.rulings.on_rejection(outcome, new)
        try:
            return (await self.rulings.on(outcome))(new)
        except Retryable:
            return None
