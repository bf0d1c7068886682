"""Execution of a capability by its name."""

from dataclasses import dataclass

from pml_common.bus.port import QueryClient
from pml_common.contracts import catalog
from pml_common.contracts.registry import ResolveCapability
from pml_common.contracts.scope import Scope
from pml_gateway.application.cached_results import ResultCache
from pml_gateway.application.execute_program import Guessed, ProgramExecution
from pml_gateway.application.workflow_service import WorkflowService
from pml_gateway.domain.api.api import ExecuteRequest, ExecuteResponse
from pml_gateway.domain.api.given_arguments import doubts, require_fitting
from pml_gateway.domain.workflow.acceptance import Program
from pml_gateway.ports import HERE, CallerSide


@dataclass(frozen=True)
class CapabilityExecution:
    """Executes capabilities by name."""

    workflows: WorkflowService
    programs: ProgramExecution
    cache: ResultCache
    query_client: QueryClient

    async def execute(
        self,
        scope: Scope,
        principal: str,
        request: ExecuteRequest,
        side: CallerSide = HERE,
        *,
        guessed: Guessed | None = None,
    ) -> ExecuteResponse:
        """Execute a capability, unless the cached result of an earlier run answers. What a caller
        did not name is `guessed`: then it runs at once or not at all. Raises as
        `ProgramExecution.execute`, QueryFailed, and InvalidRequest for arguments with which it
        cannot run."""
        reference = request.capability or ""
        query = ResolveCapability(scope=scope, principal=principal, reference=reference)
        record = await self.query_client.request(catalog.RESOLVE_CAPABILITY, query)
        if not request.dry_run:  # whose mocks answer any call
            require_fitting(record.name, record.parameters_schema, request.arguments)
        notices = (*record.notices, *doubts(record.parameters_schema, request.arguments))
        cached = await self.cache.find(principal, record, request)
        if cached is not None:
            answer = await self.workflows.response(cached)
            return answer.model_copy(update={"cached": True}).with_notices(*notices)
        # In its own scope the registry knows the source; elsewhere it becomes a new behaviour.
        source = record.source if record.scope != scope else None
        called_as = record.name if record.named else None
        program = Program(record.code, (record.name, *record.aliases), source, called_as)
        executed = await self.programs.execute(
            scope, principal, request, side, program, guessed=guessed
        )
        await self.cache.keep(record, request, executed.workflow)
        return (await self.programs.response(executed)).with_notices(*notices)
