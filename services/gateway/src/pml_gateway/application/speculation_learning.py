"""The threshold of speculation: learned from what became of guesses and the opinions of them."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from typing_extensions import override

from pml_common.bus.port import QueryClient
from pml_common.contracts import catalog
from pml_common.contracts.learner import Feedback, GiveFeedback
from pml_common.contracts.scope import Scope
from pml_gateway.domain.api.speculation_threshold import (
    KEPT,
    Opinion,
    SpeculationThreshold,
    ThresholdRule,
    threshold_of,
)
from pml_gateway.domain.workflow.workflow_state import Workflow
from pml_gateway.ports import SpeculatedRuns, Speculations


@dataclass(frozen=True)
class SpeculationLearning(Speculations):
    """Computes the threshold whenever it is needed, of what is stored, so that replicas agree and
    nothing counts twice."""

    runs: SpeculatedRuns
    query_client: QueryClient
    rule: ThresholdRule
    now: Callable[[], datetime]

    @override
    async def threshold(self, scope: Scope) -> SpeculationThreshold:
        if self.rule.span == 0:
            return threshold_of(self.rule, ())
        return threshold_of(self.rule, await self.runs.since(scope, self.now() - KEPT))

    async def begin(self, workflow: Workflow) -> None:
        """Store that this workflow runs a guess, before it is accepted: one that is not teaches
        nothing, nor does a dry run. Raises StorageUnavailable."""
        asked = workflow.requested
        if asked.dry_run is None:
            at = asked.requested_at
            await self.runs.add(workflow.scope, workflow.workflow_id, asked.principal, at)

    @override
    async def judge(self, asked: GiveFeedback, timeout_s: float = 5.0) -> Feedback:
        """The learner knows the workflow, so it is asked first; if storing fails after that, the
        caller is told, and gives the opinion again."""
        counted = await self.query_client.request(catalog.GIVE_FEEDBACK, asked, timeout=timeout_s)
        opinion = Opinion(asked.principal, asked.useful, self.now())
        await self.runs.judge(asked.scope, asked.workflow_id, opinion)
        return counted
