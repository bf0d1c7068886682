"""Composition root of the gateway: message → handler, route → handler."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence, Set
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from importlib.metadata import version
from socket import socket
from uuid import uuid4

from fastapi import FastAPI
from starlette.routing import BaseRoute

from pml_common.background import background, run_periodically
from pml_common.bus.port import Bus
from pml_common.contracts import catalog
from pml_common.contracts.gateway import WorkflowFinished
from pml_common.contracts.registry import CapabilityChanged
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition
from pml_common.http_server import HttpServer, inherited, serve_http
from pml_common.service import RunningService
from pml_common.storage.schema import open_scoped_schema, storage_check
from pml_gateway.adapters.bus.client_sessions import BusClientSessions
from pml_gateway.adapters.bus.retrying_query_client import RetryingQueryClient
from pml_gateway.adapters.bus.tool_announcer import ToolAnnouncer
from pml_gateway.adapters.local_callers import LocalCallers
from pml_gateway.adapters.login_files import LoginFiles
from pml_gateway.adapters.mcp_client.configured import configured_servers
from pml_gateway.adapters.mcp_client.server_calls import OnLog
from pml_gateway.adapters.mcp_client.server_pool import OnOffers, OnTools
from pml_gateway.adapters.mcp_client.uri_templates import fits
from pml_gateway.adapters.policy_file import PolicyFile
from pml_gateway.adapters.postgres.liveness_lock import liveness_lock
from pml_gateway.adapters.std.server import StdServers
from pml_gateway.adapters.std.tools import Backing
from pml_gateway.adapters.stores import postgres_stores
from pml_gateway.adapters.stub_tools import StubTools
from pml_gateway.adapters.tool_router import ToolRouter
from pml_gateway.application.admission import RELEASE_EVERY_S
from pml_gateway.application.client_sessions import SessionLimits, Sessions
from pml_gateway.application.composing import Composing
from pml_gateway.application.observed_outputs import ObservedOutputs
from pml_gateway.application.pass_through import PassThrough
from pml_gateway.application.policy_changes import PolicyChanges
from pml_gateway.application.quarantine import Acceptance, Quarantine
from pml_gateway.application.speculation_learning import SpeculationLearning
from pml_gateway.domain.api.capability_tools import changes_tools
from pml_gateway.domain.api.speculation_threshold import KEPT
from pml_gateway.domain.servers.offers import Offers
from pml_gateway.domain.workflow.provenance import answers_stored_request
from pml_gateway.entrypoints.bus.in_scope import in_scope
from pml_gateway.entrypoints.bus.on_analysis_rejected import on_analysis_rejected
from pml_gateway.entrypoints.bus.on_ask_outcome import on_ask_outcome
from pml_gateway.entrypoints.bus.on_call_ended import on_call_ended, on_calls_ended
from pml_gateway.entrypoints.bus.on_dead_letter import on_dead_letter
from pml_gateway.entrypoints.bus.on_execution_analyzed import on_execution_analyzed
from pml_gateway.entrypoints.bus.on_run_finished import on_run_finished, on_runs_finished
from pml_gateway.entrypoints.bus.on_workflow_accepted import on_workflows_accepted
from pml_gateway.entrypoints.bus.on_workflow_parked import on_workflow_parked
from pml_gateway.entrypoints.http.app import Limits, api_routes, rest_app
from pml_gateway.entrypoints.http.docs import docs_routes
from pml_gateway.entrypoints.http.health import health_routes
from pml_gateway.entrypoints.http.http_protocol import ReadTimeouts, protocol_with
from pml_gateway.entrypoints.mcp.endpoint import McpEndpoint
from pml_gateway.entrypoints.mcp.request_states import RequestStates
from pml_gateway.entrypoints.mcp.session_streams import StreamLimits
from pml_gateway.entrypoints.timers.measures import measured
from pml_gateway.entrypoints.timers.on_due import on_due
from pml_gateway.parts import Parts, assemble
from pml_gateway.ports import Caller, LogMessage, OfferingServers
from pml_gateway.settings import GatewaySettings

_DELETE_EVERY_S = 3600.0
_DELETE_FIRST_S = 60.0
"""After its start a service has other work."""
_DELETE_AT_ONCE = 1000
_LAST_ANSWERS_S = 1.0
_CALLS_STORED_FOR = timedelta(days=7)
_TRY_STORING_EVERY_S = 1.0
_STORE_LATE_EVERY_S = 1.0
_REVIEW_EVERY_S = 5.0
_PUBLISH_OUTPUTS_EVERY_S = 2.0
_LOOK_AT_POLICY_EVERY_S = 1.0


@asynccontextmanager
async def serve(settings: GatewaySettings, bus: Bus) -> AsyncGenerator[RunningService]:
    """Run the gateway until the context exits."""
    fd = settings.gateway_listen_fd
    listening = None if fd is None else inherited(fd)  # before any child is started
    instance = uuid4()
    listeners: list[OnTools] = []

    async def on_tools(server: str, tools: tuple[ToolDefinition, ...]) -> None:
        for listener in listeners:
            await listener(server, tools)

    offer_listeners: list[OnOffers] = []
    log_listeners: list[OnLog] = []

    def on_log(message: LogMessage, callers: Set[Caller | None]) -> None:
        for listener in log_listeners:
            listener(message, callers)

    async def on_offers(before: Offers, now: Offers) -> None:
        for listener in offer_listeners:
            await listener(before, now)

    dsn, patience_s = settings.postgres_dsn, settings.start_patience_s
    async with (
        open_scoped_schema(
            dsn,
            "gateway",
            "pml_gateway",
            patience_s=patience_s,
            shares=False,
        ) as pools,
        liveness_lock(dsn, instance),
    ):
        stores = postgres_stores(pools, settings.gateway_storage_patience_s)
        quarantine = Quarantine(stores.accepted, settings.scope, bus.now)
        async with configured_servers(
            settings.mcp_servers,
            settings.environment,
            on_tools,
            quarantine.admit,
            None if settings.gateway_logins is None else LoginFiles(settings.gateway_logins),
            on_offers,
            on_log,
        ) as (servers, configured):
            stubs = [StubTools()] if settings.gateway_stub_tools else []
            checks = {"postgres": storage_check(pools.batch)}
            outputs = ObservedOutputs(bus.publish, settings.scope)
            queries = RetryingQueryClient(bus, settings.gateway_owner_patience_s)
            policies = PolicyFile(settings.gateway_policy_file, settings.gateway_policy)
            composed = Composing(queries, stores.workflows, policies.of, bus.now)
            learning = SpeculationLearning(
                stores.speculated, queries, settings.threshold_rule, bus.now
            )
            backing = Backing(queries, composed, learning, lambda: tools, policies.of)
            std = StdServers(backing, bus.now())
            tools = ToolRouter([*stubs, std, servers], quarantine.withheld, outputs.see)
            acceptance = Acceptance(quarantine, servers.review, tools)
            key = settings.grant_key
            parts = assemble(
                settings, bus, stores, tools, acceptance, configured, checks, instance, key
            )
            endpoint = mcp_endpoint(parts, servers)
            offer_listeners.append(endpoint.offers_changed)
            log_listeners.append(endpoint.log)
            announcer = ToolAnnouncer(bus, settings.scope, bus.now, quarantine.reports)
            listeners += [announcer.announce, _change_publisher(endpoint)]
            await register_handlers(parts)
            await bus.listen(
                catalog.CAPABILITY_CHANGED, _capability_publisher(endpoint, settings.scope)
            )
            await listen_to_replicas(bus, endpoint)
            tell = endpoint.tools_changed, endpoint.offers_changed
            lists = PolicyChanges(settings.scope, policies.of, tools, servers, *tell)
            looks = run_periodically(lists.look, _LOOK_AT_POLICY_EVERY_S)
            async with (
                background(
                    (*periodic_work(parts, announcer, outputs), std.announce(on_tools), looks)
                ),
                measured(parts.admission, servers, pools),
                _serving(parts, endpoint, listening) as http,
            ):
                # Only now: once a tool is announced, everything must be ready to call it.
                await servers.start()
                for stub in stubs:
                    for name, listed in stub.list_tools().items():
                        await announcer.publish_list(name, listed)
                yield RunningService(
                    parts.checks, parts.readiness, partial(_drain, parts, endpoint, http)
                )


async def register_handlers(parts: Parts) -> None:
    """Register the handlers: the table message → handler."""
    bus, notifier, runs = parts.bus, parts.notifier, parts.runs
    under_way = parts.calls.under_way
    step = {"workflows": parts.workflows, "now": bus.now}
    judging = {"tools": parts.tools, "policy_of": parts.policies.of}

    def is_ours(scope: Scope, workflow_id: str) -> bool:
        return notifier.is_awaited(scope, workflow_id) or runs.is_known(scope, workflow_id)

    def is_made_here(scope: Scope, workflow_id: str) -> bool:
        return is_ours(scope, workflow_id) or under_way.has_of(scope, workflow_id)

    await bus.listen(catalog.WORKFLOW_FINISHED, partial(_on_end, parts), wants=is_made_here)
    await bus.listen(catalog.APPROVAL_REQUESTED, notifier.on_message, wants=notifier.is_awaited)
    await bus.listen(catalog.CAPABILITY_CHANGED, parts.names.on_capability_changed)
    await bus.listen(
        catalog.RUN_FINISHED,
        partial(on_run_finished, workflows=parts.workflows, calls=under_way),
        wants=is_made_here,
    )
    await bus.listen(
        catalog.CALL_ENDED,
        partial(on_call_ended, workflows=parts.workflows),
        wants=notifier.is_awaited,
    )
    await bus.listen(catalog.CANCEL_RUN, runs.on_end, wants=runs.is_known)
    elsewhere = parts.elsewhere
    await bus.listen(catalog.WORKFLOW_AWAITED, elsewhere.on_workflow_awaited, wants=elsewhere.wants)
    await bus.listen(catalog.TOOLS_LISTED, parts.acceptance.on_tools_listed)
    ours = parts.settings.scope
    await bus.serve(catalog.CALL_TOOL, parts.calls.on_call_tool, scopes=(ours,))
    await bus.serve(catalog.ASK_OUTCOME, partial(on_ask_outcome, workflows=parts.workflows))
    deciding = {"workflows": parts.workflows, "rulings": parts.rulings}
    analyzed = in_scope(ours, partial(on_execution_analyzed, **deciding), answers_stored_request)
    await bus.consume(catalog.GATEWAY_ON_EXECUTION_ANALYZED, analyzed)
    not_analyzed = in_scope(ours, partial(on_analysis_rejected, **deciding))
    await bus.consume(catalog.GATEWAY_ON_ANALYSIS_REJECTED, not_analyzed)
    parked = in_scope(ours, partial(on_workflow_parked, **step, **judging))
    await bus.consume(catalog.GATEWAY_ON_WORKFLOW_PARKED, parked)
    await bus.consume_batches(
        catalog.GATEWAY_ON_WORKFLOW_ACCEPTED,
        partial(on_workflows_accepted, workflows=parts.workflows),
    )
    await bus.consume_batches(
        catalog.GATEWAY_ON_RUN_FINISHED, partial(on_runs_finished, workflows=parts.workflows)
    )
    await bus.consume_batches(
        catalog.GATEWAY_ON_CALL_ENDED,
        partial(on_calls_ended, workflows=parts.workflows, calls=parts.calls),
    )
    await bus.consume_dead_letters(
        catalog.GATEWAY_ON_DEAD_LETTER,
        partial(on_dead_letter, **step, journal=bus, store=parts.stores.workflows),
    )


async def listen_to_replicas(bus: Bus, endpoint: McpEndpoint) -> None:
    """Hear of what MCP clients said to other gateways about their sessions."""
    messages, streams = endpoint.messages, endpoint.streams
    await bus.listen(catalog.CLIENT_MESSAGE, messages.on_client_message, wants=messages.wants)
    await bus.listen(
        catalog.SESSION_ENDED,
        endpoint.on_session_ended,
        wants=lambda _, session: streams.has_of(session),
    )


async def _on_end(parts: Parts, end: WorkflowFinished) -> None:
    await parts.notifier.on_message(end)
    await parts.runs.on_end(end)
    parts.calls.under_way.cancel_of(end)


def rest_api(parts: Parts, endpoint: McpEndpoint) -> FastAPI:
    """Build the REST application, with our MCP server mounted beside its routes."""
    callers = local_callers(parts.settings)
    return app_of(parts, endpoint, api_routes(parts.use_cases, parts.bus, callers, parts.streams))


def app_of(parts: Parts, endpoint: McpEndpoint, routes: Sequence[BaseRoute]) -> FastAPI:
    """Build an application of routes, those of health and docs, and our MCP server."""
    settings, configured = parts.settings, parts.use_cases.configured
    health = health_routes(
        parts.checks, parts.use_cases.tools, configured, parts.policies.fault, parts.readiness
    )
    limits = Limits(settings.names, settings.gateway_max_body_bytes)
    return rest_app([*routes, *health.routes, *docs_routes().routes, endpoint.route], limits)


@asynccontextmanager
async def _serving(
    parts: Parts, endpoint: McpEndpoint, listening: socket | None
) -> AsyncGenerator[HttpServer]:
    settings = parts.settings
    reader = protocol_with(
        ReadTimeouts(settings.gateway_head_timeout_s, settings.gateway_body_timeout_s)
    )
    address = settings.gateway_host, settings.gateway_port
    serving = serve_http(rest_api(parts, endpoint), *address, reader, handed_on=listening)
    async with serving as http, endpoint.running():
        try:
            yield http
        finally:
            parts.notifier.close()
            parts.admission.close()
            await parts.withdrawals.close()
            await parts.direct.close()
            await parts.calls.close()


async def _drain(parts: Parts, endpoint: McpEndpoint, http: HttpServer, within: float) -> None:
    """End streams, for their readers to reconnect to another gateway, and wait for requests; those
    that take longer are answered that their workflow runs, or that the outcome of their tool call
    is unknown."""
    parts.streams.end()
    endpoint.end_streams()
    if await http.drain(within):
        return
    parts.notifier.close()
    parts.admission.close()
    if not await http.drain(_LAST_ANSWERS_S):
        endpoint.end_calls()
        await http.drain(_LAST_ANSWERS_S)


def periodic_work(
    parts: Parts, announcer: ToolAnnouncer, outputs: ObservedOutputs
) -> Sequence[Coroutine[object, object, None]]:
    """List the work that the gateway does without a request or a message."""
    due = partial(
        on_due,
        parts.settings.scope,
        workflows=parts.workflows,
        store=parts.stores.workflows,
        tools=parts.tools,
        now=parts.bus.now,
        outages=parts.bus.outages,
    )
    every_s = parts.settings.gateway_sweep_every_s
    return (
        parts.relay.drop_published(),
        announcer.retire_others(parts.tools.status()),
        run_periodically(parts.relay.sweep, every_s),
        run_periodically(due, every_s),
        run_periodically(parts.live.store_late, _STORE_LATE_EVERY_S),
        run_periodically(parts.watch.look, _TRY_STORING_EVERY_S),
        run_periodically(parts.acceptance.review_held, _REVIEW_EVERY_S),
        run_periodically(outputs.publish_new, _PUBLISH_OUTPUTS_EVERY_S),
        run_periodically(parts.admission.release_ended, RELEASE_EVERY_S),
        run_periodically(
            partial(_delete_old, parts), _DELETE_EVERY_S, first_after_s=_DELETE_FIRST_S
        ),
    )


async def _delete_old(parts: Parts) -> None:
    now = parts.bus.now()
    await parts.stores.ledger.forget(now - _CALLS_STORED_FOR)
    await parts.stores.results.forget(now)
    await parts.stores.speculated.forget(now - KEPT)
    before = now - timedelta(days=parts.settings.gateway_workflow_days)
    while await parts.stores.workflows.forget(before, _DELETE_AT_ONCE) == _DELETE_AT_ONCE:
        pass


def mcp_endpoint(parts: Parts, servers: OfferingServers) -> McpEndpoint:
    """Build our MCP server, in front of what these servers offer."""
    settings = parts.settings
    return McpEndpoint(
        agent=parts.use_cases.agents,
        allowed=parts.use_cases.agents,
        offers=PassThrough(servers, parts.policies.of, fits, settings.gateway_default_timeout_s),
        callers=local_callers(settings),
        sessions=Sessions(
            BusClientSessions(parts.bus),
            parts.bus.now,
            SessionLimits(settings.gateway_session_ttl_s, settings.gateway_max_sessions),
        ),
        replicas=parts.replicas,
        now=parts.bus.now,
        version=version("pml-gateway"),
        states=RequestStates(_state_secret(parts), parts.bus.now),
        tasks=parts.use_cases.tasks,
        task_ttl_s=timedelta(days=settings.gateway_workflow_days).total_seconds(),
        hosts=settings.names.hosts,
        origins=settings.names.origins,
        max_body_bytes=settings.gateway_max_body_bytes,
        call_timeout_s=settings.gateway_default_timeout_s,
        listed=settings.gateway_listed_tools,
        stream_limits=StreamLimits(settings.gateway_max_session_streams),
    )


def _state_secret(parts: Parts) -> bytes:
    """Return the secret of request states, the same in all replicas: a signature that is never
    published, of a text that is no message's and no grant's."""
    return parts.programs.rules.key.sign(b"pml-gateway-request-states\n").encode()


def _change_publisher(endpoint: McpEndpoint) -> OnTools:
    async def publish_change(server: str, tools: tuple[ToolDefinition, ...]) -> None:
        await endpoint.tools_changed()

    return publish_change


def _capability_publisher(
    endpoint: McpEndpoint, scope: Scope
) -> Callable[[CapabilityChanged], Awaitable[None]]:
    async def publish_change(change: CapabilityChanged) -> None:
        if change.scope == scope and changes_tools(change):
            await endpoint.tools_changed()

    return publish_change


def local_callers(settings: GatewaySettings) -> LocalCallers:
    """Return who calls, and who decides, on one machine."""
    return LocalCallers(settings.scope, settings.gateway_principal, settings.approver)
