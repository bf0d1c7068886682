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
from pml_common.signing import SigningKey
from pml_common.storage.schema import answers, open_schema
from pml_gateway.adapters.background import background, keep_doing
from pml_gateway.adapters.bus_results import BusResults
from pml_gateway.adapters.bus_watch import BusWatch
from pml_gateway.adapters.capability_names import HeardCapabilityNames
from pml_gateway.adapters.configured_servers import configured_servers
from pml_gateway.adapters.local_callers import LocalCallers
from pml_gateway.adapters.mcp_servers import OnTools
from pml_gateway.adapters.newsroom import MemoryNewsroom
from pml_gateway.adapters.outbox_relay import OutboxRelay
from pml_gateway.adapters.policy_file import PolicyFile
from pml_gateway.adapters.postgres_presence import present
from pml_gateway.adapters.stores import Stores, postgres_stores
from pml_gateway.adapters.stub_tools import StubTools
from pml_gateway.adapters.tool_announcer import ToolAnnouncer
from pml_gateway.adapters.tool_router import ToolRouter
from pml_gateway.handlers.agents import Agents
from pml_gateway.handlers.execute import Executions
from pml_gateway.handlers.http_app import Health, Limits, rest_app
from pml_gateway.handlers.http_heads import Waits, bounded_by
from pml_gateway.handlers.mcp_server import McpServerFace
from pml_gateway.handlers.on_analysis_rejected import on_analysis_rejected
from pml_gateway.handlers.on_call_tool import ToolCalls
from pml_gateway.handlers.on_due import on_due
from pml_gateway.handlers.on_execution_analyzed import on_execution_analyzed
from pml_gateway.handlers.on_run_finished import on_run_finished
from pml_gateway.handlers.on_workflow_parked import on_workflow_parked
from pml_gateway.handlers.result_cache import ResultCache
from pml_gateway.handlers.runs import Runs
from pml_gateway.ports import KnownTools
from pml_gateway.settings import GatewaySettings

_FORGET_EVERY_S = 3600.0
_CALLS_REMEMBERED = timedelta(days=7)


@dataclass(frozen=True)
class Parts:
    """What handlers and routes share."""

    settings: GatewaySettings
    bus: Bus
    stores: Stores
    tools: KnownTools
    checks: Checks
    calls: ToolCalls
    relay: OutboxRelay
    newsroom: MemoryNewsroom
    runs: Runs
    names: HeardCapabilityNames
    policies: PolicyFile
    executions: Executions

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
        stores = postgres_stores(pool, settings.gateway_storage_patience_s)
        checks = {"postgres": answers(pool)}
        tools = ToolRouter([*stubs, servers])
        parts = assemble(settings, bus, stores, tools, checks, instance, settings.grant_key)
        face = mcp_face(parts)
        listeners.append(_telling(face))
        await hear(parts)
        async with background(works(parts, announcer)), _serving(parts, face):
            # Only now: whoever hears of a tool finds everything in its place.
            await servers.start()
            for stub in stubs:
                for name, listed in stub.list_tools().items():
                    await on_tools(name, listed)
            yield parts.checks


def assemble(
    settings: GatewaySettings,
    bus: Bus,
    stores: Stores,
    tools: KnownTools,
    checks: Checks,
    instance: UUID,
    key: SigningKey,
) -> Parts:
    """Everything put together, nothing started; `instance` is this process, which
    signs grants with `key`."""
    rules = settings.rules(key)
    watch, names, newsroom = BusWatch(bus), HeardCapabilityNames(bus), MemoryNewsroom()
    relay, runs = OutboxRelay(stores.outbox, bus), Runs(stores.workflows)
    policies = PolicyFile(settings.gateway_policy_file, settings.gateway_policy)
    return Parts(
        settings=settings,
        bus=bus,
        stores=stores,
        tools=tools,
        checks={"nats": watch.check, **checks},
        calls=ToolCalls(tools, stores.ledger, instance, runs, policies.of, _now),
        relay=relay,
        newsroom=newsroom,
        runs=runs,
        names=names,
        policies=policies,
        executions=Executions(
            workflows=stores.workflows,
            relay=relay,
            newsroom=newsroom,
            runs=runs,
            names=names,
            cache=ResultCache(
                memoized=BusResults(bus, _now),
                lasting=stores.results,
                workflows=stores.workflows,
                tools=tools,
                asker=bus,
                policy_of=policies.of,
                now=_now,
            ),
            asker=bus,
            policy_of=policies.of,
            terms=settings.terms,
            rules=rules,
            now=_now,
            require_bus=watch.require,
        ),
    )


async def hear(parts: Parts) -> None:
    """The table message → handler."""
    bus, workflows, tools = parts.bus, parts.stores.workflows, parts.tools
    step = {
        "workflows": workflows,
        "newsroom": parts.newsroom,
        "runs": parts.runs,
        "rules": parts.executions.rules,
        "now": _now,
    }
    judging = {"tools": tools, "policy_of": parts.policies.of}
    await bus.listen(catalog.WORKFLOW_FINISHED, parts.newsroom.hear)
    await bus.listen(catalog.APPROVAL_REQUESTED, parts.newsroom.hear)
    await bus.listen(catalog.CAPABILITY_CHANGED, parts.names.hear)
    await bus.listen(catalog.RUN_FINISHED, parts.calls.on_run_finished)
    await bus.listen(catalog.WORKFLOW_FINISHED, parts.runs.on_end)
    await bus.listen(catalog.CANCEL_RUN, parts.runs.on_end)
    await bus.serve(catalog.CALL_TOOL, parts.calls.on_call_tool)
    await bus.consume(
        catalog.GATEWAY_ON_EXECUTION_ANALYZED,
        partial(on_execution_analyzed, **step, **judging, asker=bus),
    )
    await bus.consume(catalog.GATEWAY_ON_ANALYSIS_REJECTED, partial(on_analysis_rejected, **step))
    ran = {**step, "journal": bus}
    await bus.consume(
        catalog.GATEWAY_ON_WORKFLOW_PARKED, partial(on_workflow_parked, **ran, **judging)
    )
    await bus.consume(catalog.GATEWAY_ON_RUN_FINISHED, partial(on_run_finished, **ran))


def rest(parts: Parts, face: McpServerFace) -> FastAPI:
    """The face for everybody else, with the MCP one beside it."""
    settings = parts.settings
    limits = Limits(settings.names, settings.gateway_max_body_bytes)
    health = Health(parts.checks, parts.policies.fault)
    return rest_app(parts.agents, parts.bus, _callers(settings), health, limits, [face.route])


@asynccontextmanager
async def _serving(parts: Parts, face: McpServerFace) -> AsyncGenerator[None]:
    settings = parts.settings
    reader = bounded_by(Waits(settings.gateway_head_timeout_s, settings.gateway_body_timeout_s))
    where = settings.gateway_host, settings.gateway_port
    async with serve_http(rest(parts, face), *where, reader), face.running():
        try:
            yield
        finally:
            parts.newsroom.close()
            await parts.calls.close()


def works(parts: Parts, announcer: ToolAnnouncer) -> Sequence[Coroutine[object, object, None]]:
    """What the gateway does unasked."""
    due = partial(
        on_due,
        workflows=parts.stores.workflows,
        tools=parts.tools,
        relay=parts.relay,
        rules=parts.executions.rules,
        now=_now,
    )
    every_s = parts.settings.gateway_sweep_every_s
    return (
        parts.relay.keep_dropping(),
        announcer.retire_others(parts.tools.status()),
        keep_doing(parts.relay.sweep, every_s),
        keep_doing(due, every_s),
        keep_doing(partial(_forget, parts.stores), _FORGET_EVERY_S),
    )


async def _forget(stores: Stores) -> None:
    await stores.ledger.forget(_now() - _CALLS_REMEMBERED)
    await stores.results.forget(_now())


def mcp_face(parts: Parts) -> McpServerFace:
    """The face for MCP clients."""
    settings = parts.settings
    return McpServerFace(
        agent=parts.agents,
        allowed=parts.agents,
        callers=_callers(settings),
        version=version("pml-gateway"),
        hosts=settings.names.hosts,
        max_body_bytes=settings.gateway_max_body_bytes,
        call_timeout_s=settings.gateway_default_timeout_s,
    )


def _telling(face: McpServerFace) -> OnTools:
    async def tell_clients(server: str, tools: tuple[ToolDefinition, ...]) -> None:
        await face.tools_changed()

    return tell_clients


def _callers(settings: GatewaySettings) -> LocalCallers:
    return LocalCallers(settings.scope, settings.gateway_principal, settings.approver)


def _now() -> datetime:
    return datetime.now(UTC)
