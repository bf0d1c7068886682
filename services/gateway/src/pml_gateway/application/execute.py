"""The execute use case: a program, a capability by name or for an intent, or suggestions."""

from dataclasses import dataclass
from uuid import UUID

from opentelemetry import trace

from pml_common.contracts.scope import Scope
from pml_common.telemetry.spans import spanning
from pml_gateway.application.execute_by_name import CapabilityExecution
from pml_gateway.application.execute_program import ProgramExecution
from pml_gateway.application.speculation import Speculation
from pml_gateway.application.suggestions import Suggestions
from pml_gateway.application.workflow_service import WorkflowService
from pml_gateway.domain.api.api import ExecuteRequest, ExecuteResponse, mode_of, program_of
from pml_gateway.domain.api.exact_arguments import require_exact_integers
from pml_gateway.domain.workflow.acceptance import Program
from pml_gateway.ports import HERE, Caller, CallerSide

_tracer = trace.get_tracer(__name__)


@dataclass(frozen=True)
class Execution:
    """Serves every execute request, by its mode."""

    workflows: WorkflowService
    programs: ProgramExecution
    capabilities: CapabilityExecution
    suggestions: Suggestions
    speculation: Speculation
    max_timeout_s: float

    async def execute(
        self,
        scope: Scope,
        principal: str,
        request: ExecuteRequest,
        side: CallerSide = HERE,
    ) -> ExecuteResponse:
        """Execute a request and build its response. Raises errors of the domain, the bus and
        storage."""
        with spanning(_tracer, "execute", {}):
            return await self._by_mode(scope, principal, request, side)

    async def resume(self, caller: Caller, workflow_id: UUID, side: CallerSide) -> ExecuteResponse:
        """Wait for a workflow as the call that began it would, and build its response. Raises
        NotFound and errors of storage."""
        return await self.programs.response(await self.programs.resume(caller, workflow_id, side))

    async def _by_mode(
        self, scope: Scope, principal: str, request: ExecuteRequest, side: CallerSide
    ) -> ExecuteResponse:
        mode = mode_of(request, self.max_timeout_s)
        require_exact_integers(request)
        match mode:
            case "suggest":
                return await self.suggestions.suggest(scope, principal, request)
            case "speculate":
                return await self.speculation.execute(scope, principal, request, side)
            case "by_name":
                return await self.capabilities.execute(scope, principal, request, side)
            case "direct":
                program = Program(program_of(request) or "")
                executed = await self.programs.execute(scope, principal, request, side, program)
                return await self.programs.response(executed)
