"""The pool of upstream MCP servers: one connection to each configured one, for all calls."""

import asyncio
import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType

from typing_extensions import override

from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_gateway.adapters.mcp_client.announcements import OnOffers, OnTools
from pml_gateway.adapters.mcp_client.connection import Admit, Limits
from pml_gateway.adapters.mcp_client.errors import not_connected
from pml_gateway.adapters.mcp_client.server_calls import OnLog, ignore_log
from pml_gateway.adapters.mcp_client.upstream_server import UpstreamServer
from pml_gateway.adapters.mcp_client.uri_templates import fits
from pml_gateway.adapters.mcp_client.withdrawals import Withdrawals
from pml_gateway.domain.api.log_levels import LogLevel
from pml_gateway.domain.api.mcp_tools import did_you_mean
from pml_gateway.domain.api.offered import Offered
from pml_gateway.domain.servers.offers import Offers
from pml_gateway.domain.servers.server_config import ServerConfig
from pml_gateway.domain.servers.servers_file import ServerEntry, servers_in
from pml_gateway.domain.tool_calls.repeatable import NotSent
from pml_gateway.ports import (
    Caller,
    CallOrigin,
    Logins,
    OfferingServers,
    OfferMethod,
    Reloaded,
    ServerStatus,
    ToolServers,
)

__all__ = ["Admit", "Limits", "OnOffers", "OnTools", "ServerPool", "admit_all", "ignore_offers"]

log = logging.getLogger(__name__)


async def _ignore_tools(server: str, tools: tuple[ToolDefinition, ...]) -> None:
    """Ignore a listing."""


async def ignore_offers(before: Offers, now: Offers) -> None:
    """Ignore a listing."""


async def admit_all(server: str, tools: tuple[ToolDefinition, ...]) -> tuple[ToolDefinition, ...]:
    """Admit every tool."""
    return tools


class ServerPool(ToolServers, OfferingServers):
    """`admit(server, tools)` returns the tools of a server's whole listing that may be offered.
    `on_tools(server, tools)` gets these whenever the server connects or changes them, and again
    until it returns without raising; none once the server is removed. `on_offers` gets what a
    server offers beside tools, where that changed."""

    def __init__(
        self,
        servers: Mapping[str, ServerConfig] = MappingProxyType({}),
        *,
        environment: Mapping[str, str] = MappingProxyType({}),
        limits: Limits | None = None,
        on_tools: OnTools = _ignore_tools,
        on_offers: OnOffers = ignore_offers,
        on_log: OnLog = ignore_log,
        admit: Admit = admit_all,
        logins: Logins | None = None,
    ) -> None:
        self._environment = environment
        self._limits = limits or Limits()
        self._on_tools = on_tools
        self._on_offers = on_offers
        self._on_log = on_log
        self._levels: set[asyncio.Task[None]] = set()
        self._admit = admit
        self._logins = logins
        self._withdrawals = Withdrawals(on_tools, admit)
        self._started = False
        self._applying = asyncio.Lock()
        self._faulty: dict[str, ServerStatus] = {}
        self._servers = {name: self._new(name, server) for name, server in servers.items()}

    async def start(self) -> None:
        """Begin to connect to all of them, in the background: none delays another, or the
        gateway."""
        self._started = True
        for server in self._servers.values():
            server.start()

    async def apply(self, entries: Collection[ServerEntry]) -> Reloaded:
        """Make these entries the configured ones: connect and disconnect accordingly. Servers whose
        entry is the same stay connected; those that are not, are tried again."""
        async with self._applying:
            wanted = servers_in(entries)
            before = {name: server.config for name, server in self._servers.items()}
            removed = [name for name in before if name not in wanted]
            changed = [name for name in wanted if before.get(name, wanted[name]) != wanted[name]]
            added = [name for name in wanted if name not in before]
            leaving = [self._servers.pop(name) for name in removed]
            leaving += [self._servers[name] for name in changed]
            titles = {entry.name: entry.title for entry in entries}
            self._set_faulty(entries)
            for name in (*changed, *added):
                await self._withdrawals.drop(name)
                self._servers[name] = self._new(name, wanted[name], titles[name])
            await asyncio.gather(*(server.close() for server in leaving))
            for server in leaving:
                await self._on_offers(server.offers, Offers())
            for name in removed:
                await self._withdrawals.begin(name)
            for name, server in self._servers.items():
                if name not in (*changed, *added):
                    server.retry()
                elif self._started:
                    server.start()
            unchanged = tuple(name for name in wanted if name not in (*changed, *added))
            faulty = {entry.name: entry.faults for entry in entries if entry.faults}
            return Reloaded(tuple(added), tuple(removed), tuple(changed), unchanged, faulty)

    def _new(self, name: str, server: ServerConfig, title: str | None = None) -> UpstreamServer:
        return UpstreamServer(
            name,
            server,
            environment=self._environment,
            limits=self._limits,
            on_tools=self._on_tools,
            on_offers=self._on_offers,
            on_log=self._on_log,
            link=self._link,
            admit=self._admit,
            title=None if title == name else title,
            logins=self._logins,
        )

    def _set_faulty(self, entries: Collection[ServerEntry]) -> None:
        now = datetime.now(UTC)
        for entry in entries:
            for fault in entry.faults:
                log.warning("mcpServers: %s", fault)
            for note in entry.notes:
                log.info("mcpServers.%s: %s", entry.title, note)
        self._faulty = {
            entry.name: ServerStatus(
                state="failed",
                error=f"its entry is faulty: {'; '.join(entry.faults)}",
                tools=0,
                since=now,
                hints_trusted=False,
                announced=False,
                title=None if entry.title == entry.name else entry.title,
            )
            for entry in entries
            if entry.faults
        }

    async def settled(self, timeout_s: float) -> bool:
        """Wait until each server is ready or has failed; False if some still connect by then."""
        waits = [asyncio.create_task(server.settled()) for server in self._servers.values()]
        if not waits:
            return True
        _, late = await asyncio.wait(waits, timeout=timeout_s)
        for wait in late:
            wait.cancel()
        return not late

    async def close(self) -> None:
        """Disconnect from all; their processes have ended when this returns."""
        await self._withdrawals.close()
        await asyncio.gather(*self._levels, return_exceptions=True)
        await asyncio.gather(*(server.close() for server in self._servers.values()))

    async def review(self, server: str) -> None:
        """Ask again which tools of a server may be offered."""
        if server in self._servers:
            await self._servers[server].review()

    @override
    def list_tools(self) -> dict[str, tuple[ToolDefinition, ...]]:
        return {name: server.tools for name, server in self._servers.items()}

    @override
    def status(self) -> dict[str, ServerStatus]:
        return self._faulty | {name: server.status for name, server in self._servers.items()}

    @override
    async def call(
        self, tool_id: str, args: JsonObject, timeout_s: float, origin: CallOrigin | None = None
    ) -> ToolOutcome:
        """Call a tool; its server hears nothing of the caller but what its client can be asked."""
        name, _, tool = tool_id.partition(":")
        server = self._servers.get(name)
        if server is not None:
            return await server.call(tool, args, timeout_s, origin)
        faulty = self._faulty.get(name)
        if faulty is not None:
            message = not_connected(name, faulty.error or faulty.state)
        else:
            message = f"no MCP server {name!r} is configured{did_you_mean(name, self._servers)}"
        return NotSent(status="tool_error", message=message)

    @override
    def offers(self) -> Mapping[str, Offers]:
        return {
            name: replace(server.offers, prefixed=server.config.prefix)
            for name, server in self._servers.items()
        }

    @override
    def shown(self, tool_id: str) -> JsonObject:
        name, _, tool = tool_id.partition(":")
        server = self._servers.get(name)
        return {} if server is None else server.shown(tool)

    @override
    async def ask(
        self,
        server: str,
        method: OfferMethod,
        params: JsonObject,
        capabilities: JsonObject,
        timeout_s: float,
        caller: Caller | None = None,
    ) -> JsonObject:
        requests = self._servers[server].requests
        return await requests.ask(method, params, capabilities, timeout_s, caller)

    @override
    def want_logs(self, level: LogLevel) -> None:
        for server in self._servers.values():
            task = asyncio.create_task(server.want_logs(level))
            self._levels.add(task)
            task.add_done_callback(self._levels.discard)

    def _link(self, server: str, uri: str) -> str:
        return Offered(self.offers(), fits).link(server, uri)

    @override
    async def reach(self, server: str, timeout_s: float) -> None:
        if server in self._servers:
            await self._servers[server].reach(timeout_s)
