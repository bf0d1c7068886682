"""Running a program: accepted and kept first, told to the bus second, waited for last (F2)."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

from opentelemetry import propagate, trace

from pml_common.bus.port import QueryClient
from pml_common.contracts import catalog, ids
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.decision import Policy
from pml_common.contracts.registry import Discover, ResolveCapability
from pml_common.contracts.scope import Scope
from pml_common.storage.errors import StorageUnavailable
from pml_common.telemetry import vocabulary
from pml_gateway.application.admission import Admission
from pml_gateway.application.cached_results import ResultCache
from pml_gateway.application.runs import Runs
from pml_gateway.domain.api.answer import answer_of
from pml_gateway.domain.api.api import ExecuteRequest, ExecuteResponse, mode_of, program_of
from pml_gateway.domain.api.errors import Conflict
from pml_gateway.domain.workflow.acceptance import IncomingRequest, Terms, accepted
from pml_gateway.domain.workflow.turns import Party
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.domain.workflow.workflow_state import Rules
from pml_gateway.ports import CapabilityNames, Notifier, Outgoing, Relay, Waiter, WorkflowStore

_tracer = trace.get_tracer(__name__)

SUGGESTIONS = 10


@dataclass(frozen=True)
class Executions:
    """Executions, from request to answer. `policy_of` tells a scope's policy as it is now;
    `require_bus` raises BusUnavailable where there is no NATS and Unavailable where there is no
    room, so that nothing is accepted which nobody would take up."""

    workflows: WorkflowStore
    relay: Relay
    notifier: Notifier
    admission: Admission
    runs: Runs
    names: CapabilityNames
    cache: ResultCache
    query_client: QueryClient
    policy_of: Callable[[Scope], Policy]
    terms: Terms
    rules: Rules
    now: Callable[[], datetime]
    require_bus: Callable[[], Awaitable[None]]

    async def execute(
        self, scope: Scope, principal: str, request: ExecuteRequest
    ) -> ExecuteResponse:
        """Run and wait, as long as the program may run and a little more. Raises errors of the
        domain, the bus and storage."""
        with _tracer.start_as_current_span("execute"):
            return await self._execute(scope, principal, request)

    async def _execute(
        self, scope: Scope, principal: str, request: ExecuteRequest
    ) -> ExecuteResponse:
        match mode_of(request, self.terms.max_timeout_s):
            case "suggest":
                return await self._suggest(scope, request)
            case "by_name":
                return await self._by_name(scope, principal, request)
            case "direct":
                code = program_of(request) or ""
                return await self.answer(await self._see_through(scope, principal, request, code))

    async def _by_name(
        self, scope: Scope, principal: str, request: ExecuteRequest
    ) -> ExecuteResponse:
        """Run a capability, unless the result of an earlier run answers."""
        record = await self._known(scope, request)
        earlier = await self.cache.find(record, request)
        if earlier is not None:
            return (await self.answer(earlier)).model_copy(update={"cached": True})
        names = record.name, *record.aliases
        ended = await self._see_through(scope, principal, request, record.code, names)
        await self.cache.keep(record, request, ended)
        return await self.answer(ended)

    async def _see_through(
        self,
        scope: Scope,
        principal: str,
        request: ExecuteRequest,
        code: str,
        known_as: tuple[str, ...] = (),
    ) -> Workflow:
        """Accept what is asked for once it may begin, and wait for its end."""
        await self.require_bus()
        key = request.idempotency_key or uuid4().hex
        workflow_id = ids.workflow_id(scope, key)
        patience_s = (request.timeout or self.terms.default_timeout_s) + self.terms.answer_margin_s
        deadline, party = _clock() + patience_s, Party(scope, principal)
        is_new = request.idempotency_key is None
        with self.notifier.subscribe(scope, workflow_id) as waiter:
            turn = self.admission.turn(party, workflow_id, patience_s, is_new=is_new)
            async with turn as place:
                trace.get_current_span().set_attribute(vocabulary.WORKFLOW_ID, str(workflow_id))
                asked = IncomingRequest(
                    scope=scope,
                    principal=principal,
                    request=request,
                    code=code,
                    idempotency_key=key,
                    at=self.now(),
                    policy=self.policy_of(scope),
                    known_as=known_as,
                    traceparent=_traceparent(),
                )
                workflow = accepted(asked, self.terms, self.rules)
                place.workflow = known = await self._accept(workflow)
                _require_same(known, workflow)
                place.workflow = ended = await self._wait(known, waiter, deadline)
                return ended

    async def end_of(self, workflow: Workflow) -> ExecuteResponse:
        """Wait for the end of a workflow that runs, as its caller would."""
        with self.notifier.subscribe(workflow.scope, workflow.workflow_id) as waiter:
            deadline = _clock() + workflow.timeout_s + self.terms.answer_margin_s
            return await self.answer(await self._wait(await self._look(workflow), waiter, deadline))

    async def answer(self, workflow: Workflow) -> ExecuteResponse:
        """How a workflow stands, told as its caller would be told."""
        analysis = workflow.analysis
        if analysis is None:
            return answer_of(workflow, None)
        identity = analysis.capability
        name = identity.name or await self.names.name_of(workflow.scope, identity.capability_id)
        return answer_of(workflow, name)

    async def _accept(self, workflow: Workflow) -> Workflow:
        """Store and publish a new workflow; or the one that has its key."""
        known = await self.workflows.accept(workflow)
        if known is None:
            await self.relay.publish([Outgoing(workflow.requested, workflow.traceparent)])
        return known or workflow

    async def _wait(self, workflow: Workflow, waiter: Waiter, deadline: float) -> Workflow:
        """The workflow once there is something to tell, or once its time is over."""
        while workflow.state in ("requested", "running") and (left := deadline - _clock()) > 0:
            told = await waiter.wait(min(left, self.terms.poll_every_s))
            workflow = told or await self._look(workflow)
            if waiter.over:
                break
        return workflow

    async def _look(self, workflow: Workflow) -> Workflow:
        try:
            now = await self.workflows.get(workflow.scope, workflow.workflow_id)
        except StorageUnavailable:
            return workflow  # it is accepted: its caller waits on, or is told that it runs
        return now or workflow

    async def _known(self, scope: Scope, request: ExecuteRequest) -> CapabilityRecord:
        query = ResolveCapability(scope=scope, reference=request.capability or "")
        return await self.query_client.request(catalog.RESOLVE_CAPABILITY, query)

    async def _suggest(self, scope: Scope, request: ExecuteRequest) -> ExecuteResponse:
        query = Discover(scope=scope, intent=request.intent or "", limit=SUGGESTIONS)
        page = await self.query_client.request(catalog.DISCOVER, query)
        return ExecuteResponse(status="suggestions", suggestions=page.hits)


def _require_same(known: Workflow, workflow: Workflow) -> None:
    if known.request_hash != workflow.request_hash:
        raise Conflict(
            f"idempotency_key {workflow.idempotency_key} stands for another request; "
            "use another key"
        )


def _clock() -> float:
    return asyncio.get_running_loop().time()


def _traceparent() -> str | None:
    carrier: dict[str, str] = {}
    propagate.inject(carrier)
    return carrier.get("traceparent")
