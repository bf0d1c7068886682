"""Composition root of the gateway: message → handler, route → handler."""

from collections.abc import AsyncGenerator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.metadata import version
from uuid import UUID, uuid4

from fastapi import FastAPI

from pml_common.bus.port import Bus
from pml_common.contracts import catalog
from pml_common.contracts.tool import ToolDefinition
from pml_common.health import Checks, serve_http
from pml_common.storage.pool import Pool
from pml_common.storage.schema import answers, open_schema
from pml_gateway.adapters.background import background, keep_doing
from pml_gateway.adapters.bus_watch import BusWatch
from pml_gateway.adapters.capability_names import HeardCapabilityNames
from pml_gateway.adapters.configured_servers import configured_servers
from pml_gateway.adapters.local_callers import LocalCallers
from pml_gateway.adapters.mcp_servers import OnTools
from pml_gateway.adapters.newsroom import MemoryNewsroom
from pml_gateway.adapters.outbox_relay import OutboxRelay
from pml_gateway.adapters.postgres_ledger import PostgresCallLedger
from pml_gateway.adapters.postgres_outbox import PostgresOutbox
from pml_gateway.adapters.postgres_presence import present
from pml_gateway.adapters.postgres_workflows import PostgresWorkflowStore
from pml_gateway.adapters.stub_tools import StubTools
from pml_gateway.adapters.tool_announcer import ToolAnnouncer
from pml_gateway.adapters.tool_router import ToolRouter
from pml_gateway.handlers.agents import Agents
from pml_gateway.handlers.decide import Decisions
from pml_gateway.handlers.execute import Executions
from pml_gateway.handlers.http_app import build_app
from pml_gateway.handlers.http_approvals import approval_routes
from pml_gateway.handlers.http_callers import caller_of
from pml_gateway.handlers.http_capabilities import capability_routes
from pml_gateway.handlers.http_discover import discover_routes
from pml_gateway.handlers.http_events import event_routes
from pml_gateway.handlers.http_execute import execute_routes
from pml_gateway.handlers.http_health import health_routes
from pml_gateway.handlers.http_tools import tool_routes
from pml_gateway.handlers.http_traces import trace_routes
from pml_gateway.handlers.http_workflows import workflow_routes
from pml_gateway.handlers.mcp_server import McpServerFace
from pml_gateway.handlers.on_analysis_rejected import on_analysis_rejected
from pml_gateway.handlers.on_call_tool import ToolCalls
from pml_gateway.handlers.on_due import on_due
from pml_gateway.handlers.on_execution_analyzed import on_execution_analyzed
from pml_gateway.handlers.on_run_finished import on_run_finished
from pml_gateway.ports import Caller
from pml_gateway.settings import GatewaySettings

_FORGET_EVERY_S = 3600.0
_CALLS_REMEMBERED = timedelta(days=7)


@dataclass(frozen=True)
class Parts:
    """What the handlers share."""

    settings: GatewaySettings
    bus: Bus
    checks: Checks
    tools: ToolRouter
    calls: ToolCalls
    executions: Executions
    workflows: PostgresWorkflowStore
    ledger: PostgresCallLedger
    relay: OutboxRelay
    newsroom: MemoryNewsroom
    names: HeardCapabilityNames

    @property
    def agents(self) -> Agents:
        """What REST and MCP offer alike."""
        return Agents(self.executions, self.tools)


@asynccontextmanager
async def serve(settings: GatewaySettings, bus: Bus) -> AsyncGenerator[Checks]:
    """Be the gateway for as long as the block runs."""
    instance, announcer = uuid4(), ToolAnnouncer(bus, settings.scope, _now)
    listeners: list[OnTools] = [announcer.announce]

    async def on_tools(server: str, tools: tuple[ToolDefinition, ...]) -> None:
        for listener in listeners:
            await listener(server, tools)

    dsn, patience_s = settings.postgres_dsn, settings.start_patience_s
    async with (
        open_schema(dsn, "gateway", "pml_gateway", patience_s=patience_s) as pool,
        present(dsn, instance),
        configured_servers(settings.mcp_servers, settings.environment, on_tools) as servers,
    ):
        stubs = [StubTools()] if settings.gateway_stub_tools else []
        parts = _build(settings, bus, pool, instance, ToolRouter([*stubs, servers]))
        face = _mcp_face(parts)
        listeners.append(_telling(face))
        await _hear(parts)
        async with background(_works(parts, announcer)), _serving(parts, face):
            # Only now: whoever hears of a tool finds everything in its place.
            await servers.start()
            for stub in stubs:
                for name, tools in stub.list_tools().items():
                    await on_tools(name, tools)
            yield parts.checks


def _build(
    settings: GatewaySettings, bus: Bus, pool: Pool, instance: UUID, tools: ToolRouter
) -> Parts:
    workflows = PostgresWorkflowStore(pool, patience_s=settings.gateway_storage_patience_s)
    watch, names, newsroom = BusWatch(bus), HeardCapabilityNames(bus), MemoryNewsroom()
    ledger, relay = PostgresCallLedger(pool), OutboxRelay(PostgresOutbox(pool), bus)
    return Parts(
        settings=settings,
        bus=bus,
        checks={"nats": watch.check, "postgres": answers(pool)},
        tools=tools,
        calls=ToolCalls(tools, ledger, instance, settings.rules.secret, _now),
        executions=Executions(
            workflows=workflows,
            relay=relay,
            newsroom=newsroom,
            names=names,
            asker=bus,
            terms=settings.terms,
            rules=settings.rules,
            now=_now,
            require_bus=watch.require,
        ),
        workflows=workflows,
        ledger=ledger,
        relay=relay,
        newsroom=newsroom,
        names=names,
    )


async def _hear(parts: Parts) -> None:
    """The table message → handler."""
    bus, workflows, tools = parts.bus, parts.workflows, parts.tools
    step = {"workflows": workflows, "rules": parts.settings.rules, "now": _now}
    await bus.listen(catalog.WORKFLOW_FINISHED, parts.newsroom.hear)
    await bus.listen(catalog.APPROVAL_REQUESTED, parts.newsroom.hear)
    await bus.listen(catalog.CAPABILITY_CHANGED, parts.names.hear)
    await bus.serve(catalog.CALL_TOOL, parts.calls.on_call_tool)
    await bus.consume(
        catalog.GATEWAY_ON_EXECUTION_ANALYZED,
        partial(on_execution_analyzed, **step, tools=tools, asker=bus),
    )
    await bus.consume(catalog.GATEWAY_ON_ANALYSIS_REJECTED, partial(on_analysis_rejected, **step))
    await bus.consume(catalog.GATEWAY_ON_RUN_FINISHED, partial(on_run_finished, **step))


def _app(parts: Parts, face: McpServerFace) -> FastAPI:
    """The table route → handler."""
    who, workflows, bus = caller_of(_callers(parts.settings)), parts.workflows, parts.bus
    agents, tools = parts.agents, parts.tools
    return build_app(
        [
            execute_routes(agents, who),
            discover_routes(agents, who),
            workflow_routes(workflows, who),
            event_routes(workflows, bus, who),
            approval_routes(workflows, Decisions(parts.executions, tools), who),
            capability_routes(bus, who),
            trace_routes(bus, who),
            tool_routes(agents, tools, who),
            health_routes(parts.checks, tools),
        ],
        [face.route],
        hosts=parts.settings.hosts,
        max_body_bytes=parts.settings.gateway_max_body_bytes,
    )


@asynccontextmanager
async def _serving(parts: Parts, face: McpServerFace) -> AsyncGenerator[None]:
    settings = parts.settings
    app = _app(parts, face)
    async with serve_http(app, settings.gateway_host, settings.gateway_port), face.running():
        try:
            yield
        finally:
            parts.newsroom.close()
            await parts.calls.close()


def _works(parts: Parts, announcer: ToolAnnouncer) -> Sequence[Coroutine[object, object, None]]:
    """What the gateway does unasked."""
    due = partial(
        on_due,
        workflows=parts.workflows,
        tools=parts.tools,
        relay=parts.relay,
        rules=parts.settings.rules,
        now=_now,
    )
    every_s = parts.settings.gateway_sweep_every_s
    return (
        parts.relay.keep_dropping(),
        announcer.retire_others(parts.tools.status()),
        keep_doing(parts.relay.sweep, every_s),
        keep_doing(due, every_s),
        keep_doing(partial(_forget_calls, parts.ledger), _FORGET_EVERY_S),
    )


async def _forget_calls(ledger: PostgresCallLedger) -> None:
    await ledger.forget(_now() - _CALLS_REMEMBERED)


def _mcp_face(parts: Parts) -> McpServerFace:
    settings = parts.settings
    return McpServerFace(
        agent=parts.agents,
        allowed=parts.agents,
        callers=_callers(settings),
        version=version("pml-gateway"),
        hosts=[f"[{host}]" if ":" in host else host for host in settings.hosts],
        max_body_bytes=settings.gateway_max_body_bytes,
        call_timeout_s=settings.gateway_default_timeout_s,
    )


def _telling(face: McpServerFace) -> OnTools:
    async def tell_clients(server: str, tools: tuple[ToolDefinition, ...]) -> None:
        await face.tools_changed()

    return tell_clients


def _callers(settings: GatewaySettings) -> LocalCallers:
    return LocalCallers(Caller(settings.scope, settings.gateway_principal))


def _now() -> datetime:
    return datetime.now(UTC)
