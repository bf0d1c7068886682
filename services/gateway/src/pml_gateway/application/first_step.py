"""The first step of a workflow: its analysis and the decision, before it is stored."""

from dataclasses import dataclass

from opentelemetry import trace

from pml_common.bus.errors import Retryable
from pml_common.contracts.analyzer import AnalysisRejected
from pml_common.telemetry import vocabulary
from pml_common.telemetry.spans import spanning
from pml_gateway.application.rulings import Rulings
from pml_gateway.application.workflow_service import WorkflowService
from pml_gateway.domain.api.errors import Unavailable
from pml_gateway.domain.workflow.events import WorkflowEvent
from pml_gateway.domain.workflow.workflow import Step, Workflow
from pml_gateway.ports import Analyses, NameUnsettled

_tracer = trace.get_tracer(__name__)


@dataclass(frozen=True)
class FirstStep:
    """Takes the first steps of workflows."""

    workflows: WorkflowService
    analyses: Analyses
    rulings: Rulings

    async def of(self, new: Workflow) -> Step:
        """Return a new workflow after its analysis, and what follows from it. Where something that
        the decision needs is away, the workflow is only requested: it is stored, and analysed when
        that is back. Raises Unavailable where it is to run under a name: that is reserved first."""
        attributes = {vocabulary.WORKFLOW_ID: str(new.workflow_id)}
        with spanning(_tracer, "decide", attributes) as span:
            event = await self._event(new)
            if event is not None:
                after, effects = self.workflows.advance(new, event)
                span.set_attribute(vocabulary.STATE, after.state)
                if after is not new:
                    return after, effects
        return new, (new.requested,)

    async def _event(self, new: Workflow) -> WorkflowEvent | None:
        outcome = await self.analyses.of(new.requested)
        if outcome is None and new.requested.name is not None:
            raise _no_name(new.requested.name, "the analyzer does not answer")
        if outcome is None:
            return None
        if isinstance(outcome, AnalysisRejected):
            return self.rulings.on_rejection(outcome, new)
        try:
            return (await self.rulings.on(outcome, new.requested))(new)
        except NameUnsettled as error:
            raise _no_name(error.name, str(error)) from error
        except Retryable:
            return None


def _no_name(name: str, why: str) -> Unavailable:
    return Unavailable(
        f"the name {name} cannot be reserved now: {why}. Nothing was accepted: try again later, or "
        "without a name"
    )
