"""The gateway's own part in the decision on an analysed program."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pml_common.bus.errors import QueryFailed, Retryable
from pml_common.bus.port import QueryClient
from pml_common.contracts.analyzer import AnalysisRejected, ExecutionAnalyzed
from pml_common.contracts.catalog import RESOLVE_CAPABILITY
from pml_common.contracts.decision import Policy
from pml_common.contracts.registry import ResolveCapability
from pml_common.contracts.scope import Scope
from pml_gateway.application.server_listings import absent_servers, require_listings
from pml_gateway.domain.tool_calls.repeatable import read_only_among, repeatable_among
from pml_gateway.domain.workflow.events import Analyzed, NotAnalyzed
from pml_gateway.domain.workflow.verdicts import tools_named, verdicts_of
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.ports import KnownTools


@dataclass(frozen=True)
class Rulings:
    """Builds the events of analyses: with verdicts on what the gateway lists, under the policy of
    the request and the present one."""

    tools: KnownTools
    policy_of: Callable[[Scope], Policy]
    query_client: QueryClient
    now: Callable[[], datetime]

    async def on(self, analysis: ExecutionAnalyzed) -> Callable[[Workflow], Analyzed]:
        """Return what builds the event for the analysis's workflow. Raises Retryable while the
        registry does not tell which capability has the wanted name, and while the server of a tool
        is being connected for the first time."""
        named, present = tools_named(analysis), self.policy_of(analysis.scope)
        holder = await self._name_holder(analysis)
        await require_listings(named, self.tools)

        def event(workflow: Workflow) -> Analyzed:
            policies = (workflow.requested.policy, present)
            dry_run = workflow.requested.dry_run
            return Analyzed(
                analysis=analysis,
                at=self.now(),
                name_holder=holder,
                repeatable_tools=repeatable_among(analysis, self.tools.find),
                read_only_tools=read_only_among(analysis, self.tools.find),
                verdicts=verdicts_of(policies, named, self.tools.find, dry_run),
            )

        return event

    def on_rejection(self, rejection: AnalysisRejected, workflow: Workflow) -> NotAnalyzed:
        """Build the event of a rejection, which says why servers that the program names are
        absent."""
        absent = tuple(absent_servers(workflow.requested.code, self.tools))
        return NotAnalyzed(rejection, self.now(), absent)

    async def _name_holder(self, analysis: ExecutionAnalyzed) -> UUID | None:
        """Find another capability that has the name wanted for this one."""
        wanted = analysis.capability
        if wanted.name is None:
            return None
        query = ResolveCapability(scope=analysis.scope, reference=wanted.name)
        try:
            holder = await self.query_client.request(RESOLVE_CAPABILITY, query)
        except QueryFailed as failure:
            if failure.code == "not_found":
                return None
            why = f"the holder of the name {wanted.name} is unknown: {failure}"
            raise Retryable(why) from failure
        return None if holder.capability_id == wanted.capability_id else holder.capability_id
