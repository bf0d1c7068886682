"""PML's MCP endpoint served over HTTP, in front of a stub of the agent API."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import cast
from uuid import UUID, uuid4

import httpx2
from mcp import Client
from mcp.client.session import ElicitationFnT, LoggingFnT, MessageHandlerFnT
from mcp.client.streamable_http import streamable_http_client
from starlette.applications import Starlette

from pml_common.contracts.decision import Policy
from pml_common.contracts.dns import QueryRecords, RecordPage, RecordSummary
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.registry import Discover, DiscoveryPage, ToolHit
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject, ToolAnnotations, ToolDefinition
from pml_common.http_server import serve_http
from pml_common.testing.memory_broker import MemoryBroker
from pml_common.testing.memory_bus import MemoryBus
from pml_gateway.adapters.bus.client_sessions import BusClientSessions
from pml_gateway.adapters.bus.replicas import BusReplicas
from pml_gateway.adapters.mcp_client.uri_templates import fits
from pml_gateway.app import listen_to_replicas
from pml_gateway.application.client_sessions import SessionLimits, Sessions
from pml_gateway.application.pass_through import PassThrough
from pml_gateway.domain.api.api import ExecuteRequest, ExecuteResponse
from pml_gateway.domain.api.client_session import event_id
from pml_gateway.domain.api.curation import CurateNames
from pml_gateway.domain.api.errors import Forbidden, InvalidRequest
from pml_gateway.domain.api.log_levels import LogLevel
from pml_gateway.domain.api.task_results import GetTaskResult
from pml_gateway.entrypoints.http.http_protocol import BoundedHttpProtocol
from pml_gateway.entrypoints.mcp.endpoint import McpEndpoint
from pml_gateway.entrypoints.mcp.request_states import RequestStates
from pml_gateway.entrypoints.mcp.session_streams import StreamLimits
from pml_gateway.ports import HERE, Caller, CallerSide, LogMessage, TaskApi
from pml_local.ports import free_port
from services.gateway.tests.support.offering import StubOffers

SCOPE = Scope(org="acme", project="web")
OUTPUT: JsonObject = {"type": "object", "required": ["content"]}
READ = ToolDefinition(
    server="fs",
    name="read",
    title="Read a file",
    description="Read it.",
    output_schema=OUTPUT,
    annotations=ToolAnnotations(read_only=True),
)
TWINS = tuple(
    ToolDefinition(server=server, name=name) for server, name in (("a", "b_c"), ("a_b", "c"))
)


def _named(name: str, parameters: JsonObject) -> RecordSummary:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return RecordSummary(
        record_id=UUID(int=1),
        fqdn=f"acme.web.{name}",
        name=name,
        scope=SCOPE,
        owner="mira",
        visibility="project",
        version=1,
        capability_id=UUID(int=2),
        description="Tidies a folder.",
        parameters_schema=parameters,
        listed=True,
        created_by="mira",
        created_at=at,
        updated_at=at,
    )


TIDY = _named("fs:tidy", {"type": "object", "properties": {"path": {}}, "required": ["path"]})
SORT = _named("my-fs:sort_all", {})

Answer = ToolOutcome | ExecuteResponse | Exception


@dataclass
class StubAgent:
    """Returns the configured answers and records the requests."""

    answers: dict[str, Answer] = field(default_factory=dict[str, Answer])
    requests: list[object] = field(default_factory=list[object])
    sides: list[CallerSide] = field(default_factory=list[CallerSide])
    withdrawn: list[bool] = field(default_factory=list[bool])
    outage: Exception | None = None
    registry_outage: Exception | None = None
    logged: list[LogMessage] = field(default_factory=list[LogMessage])
    hold: asyncio.Event = field(default_factory=asyncio.Event)

    async def identify(self, headers: Mapping[str, str]) -> Caller:
        if headers.get("x-user") == "mallory":
            raise Forbidden("mallory is not allowed")
        return Caller(scope=SCOPE, principal=headers.get("x-user", "nobody"))

    async def until_listed(self, tool: str, within_s: float) -> bool:
        return False

    def bare_servers(self) -> Set[str]:
        return set()

    def withheld(self, tool: str) -> str | None:
        return None

    def absent_server_of(self, tool: str) -> str | None:
        return "MCP server web is configured, but failed" if tool.startswith("web") else None

    async def named_capabilities(self, caller: Caller, cursor: str | None) -> RecordPage:
        if self.registry_outage is not None:
            raise self.registry_outage
        if cursor not in (None, "2"):
            raise InvalidRequest("cursor", "is none of this list")
        records = (TIDY,) if cursor is None else (SORT,)
        return RecordPage(records=records, total=2, next_cursor="2" if cursor is None else None)

    async def is_capability(self, caller: Caller, name: str) -> bool:
        return name == "fs:tidy"

    async def list_tools(self, scope: Scope) -> Sequence[ToolDefinition]:
        assert scope == SCOPE
        if self.outage is not None:
            raise self.outage
        return (READ, *TWINS)

    async def execute(
        self, scope: Scope, principal: str, request: ExecuteRequest, side: CallerSide = HERE
    ) -> ExecuteResponse:
        self.requests.append((scope, principal, request))
        self.sides.append(side)
        try:
            if request.code == "hold":
                await self.hold.wait()
        except asyncio.CancelledError:
            self.withdrawn.append(side.withdrawn())
            raise
        answer = self.answers.get("execute")
        assert isinstance(answer, ExecuteResponse)
        return answer

    async def result(
        self, caller: Caller, asked: GetTaskResult, side: CallerSide = HERE
    ) -> ExecuteResponse:
        self.requests.append((caller, asked))
        answer = self.answers["result"]
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, ExecuteResponse)
        return answer

    async def stop(self, caller: Caller, workflow_id: UUID, reason: str | None) -> ExecuteResponse:
        self.requests.append((caller, workflow_id, reason))
        answer = self.answers["stop"]
        assert isinstance(answer, ExecuteResponse)
        return answer

    async def discover(self, query: Discover) -> DiscoveryPage:
        self.requests.append(query)
        hit = ToolHit(
            id="fs:read", name="fs:read", score=0.9, description="Read it.", input_schema={}
        )
        return DiscoveryPage(hits=(hit,), total=1, discovery_id=UUID(int=8))

    async def query_records(self, query: QueryRecords) -> RecordPage:
        self.requests.append(query)
        return RecordPage(records=(), total=0)

    async def curate(
        self, scope: Scope, principal: str, request: CurateNames, side: CallerSide = HERE
    ) -> ToolOutcome | ExecuteResponse:
        self.requests.append((scope, principal, request))
        return ToolOutcome(status="ok", result={"suggestions": []})

    async def call_tool(
        self,
        scope: Scope,
        principal: str,
        tool_id: str,
        args: JsonObject,
        timeout_s: float,
        side: CallerSide = HERE,
    ) -> ToolOutcome | ExecuteResponse:
        self.requests.append((tool_id, args))
        self.sides.append(side)
        for message in self.logged:
            if side.logs is not None:
                side.logs.take(message)
        answer = self.answers[tool_id]
        if isinstance(answer, Exception):
            raise answer
        return answer


@dataclass
class ServedEndpoint:
    agent: StubAgent
    offers: StubOffers
    endpoint: McpEndpoint
    url: str
    bus: MemoryBus

    async def changed(self) -> str:
        """Tell clients that the tools have changed; return the least id of the event."""
        at = event_id(self.bus.now())
        await self.endpoint.tools_changed()
        return at

    @asynccontextmanager
    async def client(
        self,
        mode: str = "auto",
        user: str = "ada",
        query: str = "",
        elicitation: ElicitationFnT | None = None,
        on_message: MessageHandlerFnT | None = None,
        on_log: LoggingFnT | None = None,
        log_level: LogLevel | None = None,
    ) -> AsyncGenerator[Client]:
        """Connect the official client as a user, `query` at the end of its URL."""
        async with (
            httpx2.AsyncClient(headers={"X-User": user}) as http,
            Client(
                streamable_http_client(f"{self.url}{query}", http_client=http),
                mode=mode,
                elicitation_callback=elicitation,
                message_handler=on_message,
                logging_callback=on_log,
                log_level=log_level,
            ) as client,
        ):
            yield client


@asynccontextmanager
async def served(
    max_body_bytes: int = 1_000_000,
    beat_s: float = 5.0,
    origins: Sequence[str] = (),
    broker: MemoryBroker | None = None,
    stream_beat_s: float = 15.0,
) -> AsyncGenerator[ServedEndpoint]:
    """Serve an endpoint on a free port of loopback; those with one `broker` are replicas."""
    agent, offers, bus = StubAgent(), StubOffers(), MemoryBus(broker)
    endpoint = McpEndpoint(
        agent=agent,
        allowed=agent,
        offers=PassThrough(offers, lambda _: Policy(), fits, 5.0),
        callers=agent,
        sessions=Sessions(BusClientSessions(bus), bus.now, SessionLimits(sessions=4)),
        replicas=BusReplicas(bus, uuid4()),
        now=bus.now,
        stream_limits=StreamLimits(streams=2, beat_s=stream_beat_s),
        version="1",
        states=RequestStates(bytes(32), lambda: datetime.now(UTC)),
        tasks=cast("TaskApi", None),
        task_ttl_s=60.0,
        max_body_bytes=max_body_bytes,
        beat_s=beat_s,
        origins=origins,
    )
    await listen_to_replicas(bus, endpoint)
    port = free_port()
    app = Starlette(routes=[endpoint.route])
    async with serve_http(app, "127.0.0.1", port, BoundedHttpProtocol), endpoint.running():
        yield ServedEndpoint(agent, offers, endpoint, f"http://127.0.0.1:{port}/mcp", bus)
    await bus.drain(1.0)
