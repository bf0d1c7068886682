"""GET /api/servers, POST /api/servers/reload; GET /api/servers/{server}/quarantine,
POST /api/servers/{server}/accept."""

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import Field

from pml_gateway.application.quarantine import Acceptance
from pml_gateway.application.server_listings import bare_servers
from pml_gateway.domain.api.mcp_names import kept_prefixes
from pml_gateway.domain.api.request import Request
from pml_gateway.domain.api.views import (
    FaultyServer,
    QuarantineView,
    ReloadView,
    ServerList,
    ServerView,
    quarantine_of,
)
from pml_gateway.entrypoints.http.routing import (
    CONFLICT,
    NOT_APPROVER,
    NOT_FOUND,
    CallerOf,
    api_router,
)
from pml_gateway.ports import Caller, ConfiguredServers, ToolServers


class Accept(Request):
    """Definitions to accept: for each tool, by name, the `definition_hash` that was shown."""

    tools: Annotated[dict[str, str], Field(min_length=1, max_length=1000)]


def server_routes(
    servers: ToolServers,
    acceptance: Acceptance,
    configured: ConfiguredServers,
    caller_of: CallerOf,
    approver_of: CallerOf,
) -> APIRouter:
    """Routes that read the configured MCP servers, reload their configuration, and accept changed
    definitions of tools."""
    router = api_router("servers")

    @router.get("/servers", operation_id="list_servers")
    async def list_servers(_: Annotated[Caller, Depends(caller_of)]) -> ServerList:
        """List the configured servers with the state of their connections and their tools in
        quarantine."""
        states = servers.status()
        listed = [each.tool_id for tools in servers.list_tools().values() for each in tools]
        prefixed = kept_prefixes(listed, bare_servers(servers))
        views = [
            ServerView(
                name=name,
                title=status.title,
                state=status.state,
                error=status.error,
                tools=status.tools,
                since=status.since,
                hints_trusted=status.hints_trusted,
                warnings=(*status.warnings, *_renamed(name, prefixed)),
                prefixed=status.prefixed,
                announced=status.announced,
                circuit=status.circuit,
                circuit_fault=status.circuit_fault,
                calls_under_way=status.calls_under_way,
                calls_queued=status.calls_queued,
                timeout_s=status.timeout_s,
                excluded=status.excluded,
                transport=status.transport,
                protocol=status.protocol,
                version=status.version,
                needs_login=status.needs_login,
                declares=status.declares,
                quarantined=acceptance.quarantine.reports(name),
            )
            for name, status in sorted(states.items())
        ]
        return ServerList(servers=tuple(views), file_fault=configured.fault)

    @router.post(
        "/servers/reload", operation_id="reload_servers", responses={**NOT_APPROVER, **CONFLICT}
    )
    async def reload_servers(_: Annotated[Caller, Depends(approver_of)]) -> ReloadView:
        """Read the mcpServers file again: connect added servers, disconnect removed ones, connect
        changed ones anew, and try at once those that are not connected; the rest stays as it is.
        Entries with faults are set aside. A file that cannot be read is a conflict, and changes
        nothing. Idempotent."""
        found = await configured.reload()
        return ReloadView(
            added=found.added,
            removed=found.removed,
            changed=found.changed,
            unchanged=found.unchanged,
            faulty=tuple(
                FaultyServer(name=name, faults=faults) for name, faults in found.faulty.items()
            ),
        )

    @router.get("/servers/{server}/quarantine", operation_id="show_quarantine", responses=NOT_FOUND)
    async def show_quarantine(
        server: str, _: Annotated[Caller, Depends(caller_of)]
    ) -> QuarantineView:
        """Show what a server changed in the definitions of its tools in quarantine."""
        return quarantine_of(server, acceptance.held(server).values())

    @router.post(
        "/servers/{server}/accept",
        operation_id="accept_tools",
        responses={**NOT_APPROVER, **NOT_FOUND, **CONFLICT},
    )
    async def accept_tools(
        server: str, body: Accept, caller: Annotated[Caller, Depends(approver_of)]
    ) -> QuarantineView:
        """Accept changed definitions, which ends the quarantine of these tools; approvals of calls
        under the former definition are void. Return what is left in quarantine. Idempotent; a tool
        whose definition changed again since it was shown is a conflict, and nothing is accepted."""
        await acceptance.accept(caller.principal, server, body.tools)
        return quarantine_of(server, acceptance.held(server).values())

    return router


def _renamed(server: str, prefixed: Mapping[str, str]) -> list[str]:
    """Explain which tools of a server are not listed under their own names."""
    return [
        f"{tool_id} is listed as {name}: its own name is another tool's, PML's or too long"
        for tool_id, name in sorted(prefixed.items())
        if tool_id.partition(":")[0] == server
    ]
