"""The execute use case: a program, a capability by name, or suggestions for an intent."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID, uuid4

from opentelemetry import trace

from pml_common.bus.port import QueryClient
from pml_common.contracts import catalog
from pml_common.contracts.decision import Policy
from pml_common.contracts.registry import Discover, ResolveCapability
from pml_common.contracts.scope import Scope
from pml_gateway.application.cached_results import ResultCache
from pml_gateway.application.execute_program import ProgramExecution
from pml_gateway.application.workflow_service import WorkflowService
from pml_gateway.domain.api.api import ExecuteRequest, ExecuteResponse, mode_of, program_of
from pml_gateway.domain.api.exact_arguments import require_exact_integers
from pml_gateway.domain.api.given_arguments import doubts, require_certain
from pml_gateway.ports import HERE, Caller, CallerSide

_tracer = trace.get_tracer(__name__)

SUGGESTIONS = 10


@dataclass(frozen=True)
class CapabilityExecution:
    """Executes capabilities by name."""

    workflows: WorkflowService
    programs: ProgramExecution
    cache: ResultCache
    query_client: QueryClient

    async def execute(
        self, scope: Scope, principal: str, request: ExecuteRequest, side: CallerSide = HERE
    ) -> ExecuteResponse:
        """Execute a capability, unless the cached result of an earlier run answers. Raises as
        `ProgramExecution.execute`, QueryFailed, and InvalidRequest for arguments with which it
        cannot run."""
        reference = request.capability or ""
        query = ResolveCapability(scope=scope, principal=principal, reference=reference)
        record = await self.query_client.request(catalog.RESOLVE_CAPABILITY, query)
        require_certain(record.name, record.parameters_schema, request.arguments)
        notices = (*record.notices, *doubts(record.parameters_schema, request.arguments))
        told = {"notices": notices} if notices else {}
        cached = await self.cache.find(principal, record, request)
        if cached is not None:
            answer = await self.workflows.response(cached)
            return answer.model_copy(update={"cached": True, **told})
        # In its own scope the registry knows the source; elsewhere it becomes a new behaviour.
        source = record.source if record.scope != scope else None
        called_as = record.name if record.named else None
        program = record.code, (record.name, *record.aliases), source, called_as
        executed = await self.programs.execute(scope, principal, request, side, *program)
        await self.cache.keep(record, request, executed.workflow)
        return (await self.programs.response(executed)).model_copy(update=told)


@dataclass(frozen=True)
class Suggestions:
    """Suggests tools and capabilities instead of running anything; none that the policy of the
    caller's scope denies."""

    query_client: QueryClient
    policy_of: Callable[[Scope], Policy]

    async def suggest(
        self, scope: Scope, principal: str, request: ExecuteRequest
    ) -> ExecuteResponse:
        """Return the best matches for the request's intent. Raises QueryFailed."""
        query = Discover(
            scope=scope,
            principal=principal,
            intent=request.intent or "",
            limit=SUGGESTIONS,
            policy=self.policy_of(scope),
        )
        page = await self.query_client.request(catalog.DISCOVER, query)
        found = ExecuteResponse(status="suggestions", suggestions=page.hits, discovery_id=uuid4())
        return found.model_copy(update={"degraded": True}) if page.degraded else found


@dataclass(frozen=True)
class Execution:
    """Serves every execute request, by its mode."""

    workflows: WorkflowService
    programs: ProgramExecution
    capabilities: CapabilityExecution
    suggestions: Suggestions
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
        with _tracer.start_as_current_span("execute"):
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
            case "by_name":
                return await self.capabilities.execute(scope, principal, request, side)
            case "direct":
                code = program_of(request) or ""
                executed = await self.programs.execute(scope, principal, request, side, code)
                return await self.programs.response(executed)
