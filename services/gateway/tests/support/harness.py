"""A gateway under test in this process, with fake services around it."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol
from uuid import uuid4

import httpx2
from starlette.types import ASGIApp
from typing_extensions import override

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.executor import CancelRun
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_common.storage.scoped import ScopedPools
from pml_common.testing.memory_broker import MemoryBroker
from pml_common.testing.memory_bus import MemoryBus
from pml_gateway.adapters.bus.capability_names import CachedCapabilityNames
from pml_gateway.adapters.bus.outbox_relay import OutboxRelay
from pml_gateway.adapters.live_workflows import LiveWorkflows
from pml_gateway.adapters.local_notifier import LocalNotifier
from pml_gateway.adapters.stores import Stores, postgres_stores
from pml_gateway.adapters.tool_router import ToolRouter
from pml_gateway.app import mcp_endpoint, register_handlers
from pml_gateway.application.quarantine import Acceptance, Quarantine
from pml_gateway.application.run_cache import RunCache
from pml_gateway.application.workflow_service import WorkflowService
from pml_gateway.domain.api.errors import Conflict
from pml_gateway.entrypoints.mcp.tools import McpTools
from pml_gateway.parts import Parts, assemble
from pml_gateway.ports import (
    CallOrigin,
    ConfiguredServers,
    Reloaded,
    ServerStatus,
    ToolServers,
    WorkflowStore,
)
from pml_gateway.settings import GatewaySettings
from services.gateway.tests.support.builders import AT, KEY, READ, RULES, SCOPE, TERMS, WRITE
from services.gateway.tests.support.fake_stores import FakeWorkflows
from services.gateway.tests.support.fakes import FakeServices
from services.gateway.tests.support.offering import StubOffers
from services.gateway.tests.support.shared_app import shared_app

Json = dict[str, Any]
APPROVER_KEY = "the key of the approver"
APPROVER = {"Authorization": f"Bearer {APPROVER_KEY}"}
READY = ServerStatus(state="ready", error=None, tools=2, since=AT)


@dataclass
class FakeServers(ToolServers, ConfiguredServers):
    """An MCP server `fs` whose tools return their arguments, or first the given `outcomes`; `made`
    lists the calls made, `origins` whose they were. The configuration is reloaded as `reloaded`, or
    has a `fault`. Calls wait for `release`, if there is one."""

    reloaded: Reloaded = field(default_factory=Reloaded)
    broken: str | None = None

    listed: Mapping[str, tuple[ToolDefinition, ...]] = field(
        default_factory=lambda: {"fs": (READ, WRITE)}
    )
    stands: Mapping[str, ServerStatus] = field(default_factory=lambda: {"fs": READY})
    made: list[str] = field(default_factory=list[str])
    origins: list[CallOrigin] = field(default_factory=list[CallOrigin])
    outcomes: list[ToolOutcome] = field(default_factory=list[ToolOutcome])
    release: asyncio.Event | None = None
    declares: tuple[ToolDefinition, ...] = (READ, WRITE)

    @override
    async def call(
        self, tool_id: str, args: JsonObject, timeout_s: float, origin: CallOrigin
    ) -> ToolOutcome:
        self.made.append(tool_id)
        self.origins.append(origin)
        if self.release is not None:
            await self.release.wait()
        return self.outcomes.pop(0) if self.outcomes else ToolOutcome(status="ok", result=args)

    @override
    def list_tools(self) -> Mapping[str, tuple[ToolDefinition, ...]]:
        return self.listed

    @override
    def status(self) -> Mapping[str, ServerStatus]:
        return self.stands

    @override
    async def reach(self, server: str, timeout_s: float) -> None:
        """Change nothing."""

    @property
    @override
    def fault(self) -> str | None:
        return self.broken

    @override
    async def reload(self) -> Reloaded:
        if self.broken is not None:
            raise Conflict(self.broken)
        return self.reloaded

    async def review(self, quarantine: Quarantine, server: str) -> None:
        """List what is admitted of what the server `declares`."""
        offered = await quarantine.admit(server, self.declares)
        self.listed = {**self.listed, server: offered}


def workflow_service(store: FakeWorkflows, bus: MemoryBus | None = None) -> WorkflowService:
    """Build a workflow service on a fake store, with a run cache and a notifier of its own."""
    bus = bus or MemoryBus()
    return WorkflowService(
        store=LiveWorkflows(store, bus),
        relay=OutboxRelay(store.outbox, bus),
        notifier=LocalNotifier(),
        runs=RunCache(store),
        names=CachedCapabilityNames(bus),
        terms=TERMS,
        rules=RULES,
    )


def settings(**changed: object) -> GatewaySettings:
    """Build settings for tests, whatever the environment says."""
    given: dict[str, object] = {
        "gateway_org": SCOPE.org,
        "gateway_project": SCOPE.project,
        "gateway_principal": "mira",
        "gateway_approver": "noor",
        "gateway_approver_key_sha256": hashlib.sha256(APPROVER_KEY.encode()).hexdigest(),
        "gateway_answer_margin_s": 0.0,
        "gateway_owner_patience_s": 0.1,
        "gateway_port": 0,
        **changed,
    }
    return GatewaySettings.model_validate(given)


@dataclass
class World:
    """A gateway, its parts, the fake services around it, and a client."""

    parts: Parts
    peers: FakeServices
    servers: FakeServers
    http: httpx2.AsyncClient
    broker: MemoryBroker
    kept: WorkflowStore
    """The workflows that are in the database, whatever the gateway knows besides."""

    async def execute(self, code: str = "return 1;", **more: object) -> Json:
        """Call POST /api/execute and expect 200."""
        answer = await self.http.post("/api/execute", json={"code": code, **more})
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def decide(self, workflow_id: object, decision: str, **more: object) -> httpx2.Response:
        """Call POST /api/workflows/{id}/approval."""
        body = {"decision": decision, **more}
        path = f"/api/workflows/{workflow_id}/approval"
        return await self.http.post(path, json=body, headers=APPROVER)

    def cancelled(self) -> list[CancelRun]:
        """Return the commands that end runs."""
        messages = self.broker.streams["PML_EXECUTOR_CMD"].messages
        found = [each.envelope for each in messages if ".cancel-run." in each.envelope.subject]
        return [CancelRun.model_validate_json(each.data) for each in found]

    @property
    def tools(self) -> McpTools:
        """The tools as MCP clients list and call them."""
        agents = self.parts.use_cases.agents
        return McpTools(agents, agents, 5.0, StubOffers().shown)

    async def workflow(self, workflow_id: object) -> Json:
        """Call GET /api/workflows/{id} and expect 200."""
        answer = await self.http.get(f"/api/workflows/{workflow_id}")
        assert answer.status_code == 200, answer.text
        return answer.json()


def assembled(
    chosen: GatewaySettings, bus: MemoryBus, stores: Stores, servers: FakeServers
) -> Parts:
    """Assemble a gateway in this process."""
    quarantine = Quarantine(stores.accepted, SCOPE, bus.now)
    router = ToolRouter([servers], quarantine.withheld)
    acceptance = Acceptance(quarantine, partial(servers.review, quarantine), router)
    return assemble(chosen, bus, stores, router, acceptance, servers, {}, uuid4(), KEY)


class Worlds(Protocol):
    """Starts gateways on the database of the test."""

    def __call__(
        self, peers_there: bool = True, **changed: object
    ) -> AbstractAsyncContextManager[World]:
        """Run a gateway and the services around it until the context exits."""
        ...


@asynccontextmanager
async def running_world(
    pool: ScopedPools, peers_there: bool = True, **changed: object
) -> AsyncGenerator[World]:
    """Run a gateway and the services around it until the context exits."""
    broker, servers, stores = MemoryBroker(), FakeServers(), postgres_stores(pool, PATIENCE_S)
    bus, peer_bus = MemoryBus(broker), MemoryBus(broker)
    peers = FakeServices(peer_bus)
    parts = assembled(settings(**changed), bus, stores, servers)
    await register_handlers(parts)
    if peers_there:
        await peers.start()
    async with client_of(shared_app(parts, mcp_endpoint(parts, StubOffers()))) as http:
        try:
            yield World(parts, peers, servers, http, broker, stores.workflows)
        finally:
            parts.notifier.close()
            await parts.direct.close()
            await parts.calls.close()
            peers.release.set()
            await peer_bus.drain(1)
            await bus.drain(1)


def client_of(app: ASGIApp) -> httpx2.AsyncClient:
    """Build a client that calls an application without a network."""
    transport = httpx2.ASGITransport(app, raise_app_exceptions=False)
    return httpx2.AsyncClient(
        transport=transport, base_url="http://127.0.0.1:8080", timeout=PATIENCE_S
    )


def failed(status: ServerStatus, error: str) -> ServerStatus:
    """Return the status of a server that failed to connect."""
    return replace(status, state="failed", error=error)
