"""The gateway's own part in the decision on an analysed program."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from pml_common.contracts.analyzer import AnalysisRejected, ExecutionAnalyzed
from pml_common.contracts.decision import Policy
from pml_common.contracts.gateway import ExecutionRequested
from pml_common.contracts.scope import Scope
from pml_gateway.application.server_listings import absent_servers, require_listings
from pml_gateway.domain.tool_calls.repeatable import read_only_among, repeatable_among
from pml_gateway.domain.workflow.events import Analyzed, NotAnalyzed
from pml_gateway.domain.workflow.verdicts import tools_named, verdicts_of
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.ports import CapabilityNames, KnownTools


@dataclass(frozen=True)
class Rulings:
    """Builds the events of analyses: with verdicts on what the gateway lists, under the policy of
    the request and the present one."""

    tools: KnownTools
    policy_of: Callable[[Scope], Policy]
    names: CapabilityNames
    now: Callable[[], datetime]

    async def on(
        self, analysis: ExecutionAnalyzed, requested: ExecutionRequested | None
    ) -> Callable[[Workflow], Analyzed]:
        """Return what builds the event for the analysis's workflow, after its name is reserved.
        Raises NameUnsettled while the registry does not tell who has the wanted name, and Retryable
        while the server of a tool is being connected for the first time."""
        named, present = tools_named(analysis), self.policy_of(analysis.scope)
        refused = None if requested is None else await self.names.reserve(requested, analysis)
        await require_listings(named, self.tools)

        def event(workflow: Workflow) -> Analyzed:
            policies = (workflow.requested.policy, present)
            dry_run = workflow.requested.dry_run
            return Analyzed(
                analysis=analysis,
                at=self.now(),
                name_refused=refused,
                repeatable_tools=repeatable_among(analysis, self.tools.find),
                read_only_tools=read_only_among(analysis, self.tools.find),
                verdicts=verdicts_of(policies, named, self.tools.find, dry_run),
            )

        return event

    def on_rejection(self, rejection: AnalysisRejected, workflow: Workflow) -> NotAnalyzed:
        """Build the event of a rejection, which says why servers that the program names are
        absent."""
        absent = absent_servers(workflow.requested.code, self.tools, self.now())
        return NotAnalyzed(rejection, self.now(), absent)
