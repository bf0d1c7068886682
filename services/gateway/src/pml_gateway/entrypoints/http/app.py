"""The REST application: route → handler."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute

from pml_common.bus.port import Bus, QueryClient
from pml_gateway.application.agents import Agents
from pml_gateway.application.cached_results import ResultCache
from pml_gateway.application.cancel import Cancellations
from pml_gateway.application.capability_views import CapabilityViews
from pml_gateway.application.decide import Decisions
from pml_gateway.application.delete_data import Deletions
from pml_gateway.application.delete_principal import PrincipalData
from pml_gateway.application.elicit import Elicitations
from pml_gateway.application.quarantine import Acceptance
from pml_gateway.application.read_traces import Traces
from pml_gateway.application.workflow_service import WorkflowService
from pml_gateway.domain.api.origin import AllowedHosts
from pml_gateway.entrypoints.http.agents import discover_routes, execute_routes
from pml_gateway.entrypoints.http.approvals import approval_routes
from pml_gateway.entrypoints.http.capabilities import capability_routes
from pml_gateway.entrypoints.http.capability_views import capability_view_routes
from pml_gateway.entrypoints.http.dependencies import dependency_routes
from pml_gateway.entrypoints.http.dns import dns_change_routes, dns_routes
from pml_gateway.entrypoints.http.elicitation import elicitation_routes
from pml_gateway.entrypoints.http.errors import add_error_handlers
from pml_gateway.entrypoints.http.events import EventStreams, event_routes
from pml_gateway.entrypoints.http.graph import graph_routes
from pml_gateway.entrypoints.http.guard import Guard
from pml_gateway.entrypoints.http.index import index_routes
from pml_gateway.entrypoints.http.learning import learning_routes
from pml_gateway.entrypoints.http.measures import Measured
from pml_gateway.entrypoints.http.principals import principal_routes
from pml_gateway.entrypoints.http.routing import approver_of, caller_of, caller_or_approver_of
from pml_gateway.entrypoints.http.servers import server_routes
from pml_gateway.entrypoints.http.stats import stats_routes
from pml_gateway.entrypoints.http.tools import tool_routes
from pml_gateway.entrypoints.http.traces import trace_routes
from pml_gateway.entrypoints.http.workflows import cancel_routes, deletion_routes, workflow_routes
from pml_gateway.ports import (
    Approvers,
    ComposedPrograms,
    ConfiguredServers,
    KnownTools,
    Speculations,
    TaskApi,
    WorkflowStore,
)


@dataclass(frozen=True)
class UseCases:
    """Use cases behind the routes, and what the routes read from."""

    agents: Agents
    cancellations: Cancellations
    deletions: Deletions
    principals: PrincipalData
    decisions: Decisions
    elicitations: Elicitations
    tasks: TaskApi
    cache: ResultCache
    workflows: WorkflowService
    store: WorkflowStore
    tools: KnownTools
    acceptance: Acceptance
    configured: ConfiguredServers
    query_client: QueryClient
    composed: ComposedPrograms
    speculations: Speculations
    traces: Traces


@dataclass(frozen=True)
class Limits:
    """Limits of requests: the allowed hosts, and the largest body."""

    hosts: AllowedHosts
    max_body_bytes: int


def api_routes(
    use_cases: UseCases, bus: Bus, callers: Approvers, streams: EventStreams
) -> list[BaseRoute]:
    """List the routes of the interface; `rest_app` serves them."""
    caller, agents, workflows = caller_of(callers), use_cases.agents, use_cases.store
    query_client, tools = use_cases.query_client, use_cases.tools
    routers = (
        execute_routes(agents, caller),
        discover_routes(agents, caller),
        workflow_routes(workflows, use_cases.workflows, caller),
        event_routes(workflows, bus, caller, streams),
        cancel_routes(use_cases.cancellations, caller),
        deletion_routes(use_cases.deletions, caller),
        principal_routes(use_cases.principals, caller_or_approver_of(callers)),
        elicitation_routes(use_cases.elicitations, caller, approver_of(callers)),
        approval_routes(workflows, use_cases.decisions, caller, approver_of(callers)),
        capability_routes(query_client, use_cases.cache, caller),
        capability_view_routes(CapabilityViews(query_client), caller),
        dependency_routes(query_client, caller),
        graph_routes(query_client, caller),
        dns_routes(query_client, caller_or_approver_of(callers)),
        dns_change_routes(query_client, use_cases.composed, caller_or_approver_of(callers)),
        stats_routes(query_client, use_cases.speculations, caller),
        trace_routes(use_cases.traces, caller),
        learning_routes(query_client, approver_of(callers)),
        index_routes(query_client, caller, approver_of(callers)),
        tool_routes(agents, bus, caller),
        server_routes(
            tools, use_cases.acceptance, use_cases.configured, caller, approver_of(callers)
        ),
    )
    return [route for router in routers for route in router.routes]


def rest_app(routes: Sequence[BaseRoute], limits: Limits) -> FastAPI:
    """Build the application: all routes behind one guard."""
    app = FastAPI(
        title="PML",
        version=version("pml-gateway"),
        docs_url=None,
        redoc_url=None,
        summary="Procedural memory for agents: programs are analyzed before they run, and stored.",
    )
    app.router.routes.extend(routes)  # `include_router` builds each a second time
    add_error_handlers(app)
    if limits.hosts.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=sorted(limits.hosts.origins),
            allow_methods=("GET", "POST", "PATCH", "DELETE"),
            allow_headers=("*",),
            expose_headers=("Allow", "Retry-After", "WWW-Authenticate", "Mcp-Session-Id"),
        )
    app.add_middleware(Guard, hosts=limits.hosts, max_body_bytes=limits.max_body_bytes)
    app.add_middleware(Measured)
    return app
