"""The quarantine of tools whose definition changed after it was accepted."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import QuarantinedTool, ToolDefinition
from pml_common.storage.errors import StorageUnavailable
from pml_gateway.domain.api.errors import Conflict, NotFound, Unavailable
from pml_gateway.domain.api.mcp_names import listed_names
from pml_gateway.domain.api.mcp_tools import did_you_mean
from pml_gateway.domain.servers.quarantine import (
    Held,
    compare,
    declared,
    declared_hash,
    quarantined,
    why_held,
)
from pml_gateway.ports import AcceptedTools, KnownTools

log = logging.getLogger(__name__)


class Quarantine:
    """Admits the tools of one scope's servers: of each tool only the accepted definition. The first
    definition of a tool is accepted."""

    def __init__(self, accepted: AcceptedTools, scope: Scope, now: Callable[[], datetime]) -> None:
        self._store = accepted
        self.scope = scope
        self._now = now
        self._accepted: dict[str, str] = {}
        self._held: dict[str, Mapping[str, Held]] = {}
        self._stale: set[str] = set()

    async def admit(
        self, server: str, listed: tuple[ToolDefinition, ...]
    ) -> tuple[ToolDefinition, ...]:
        """Return those tools of a server's listing that may be offered. Tools whose definition is
        not the one known here are compared with the store; all others need none, and those that it
        cannot compare are held back until it can."""
        is_stale = server in self._stale
        others = [
            tool
            for tool in listed
            if is_stale or self._accepted.get(tool.tool_id) != declared_hash(tool)
        ]
        read = await self._read(server, others)
        if read is not None:
            self._stale.discard(server)
        before = self.held(server)
        if read is None:
            read = {tool_id: one.accepted for tool_id, one in before.items() if one.accepted}
        found = compare(listed, self._accepted, read)
        self._accepted.update(found.accepted)
        self._held[server] = found.held
        for tool_id in sorted(found.held.keys() - before.keys()):
            log.warning("%s", why_held(found.held[tool_id]))
        return found.offered

    async def accept(self, tools: list[ToolDefinition], by: str) -> None:
        """Store the accepted definitions. Raises StorageUnavailable."""
        await self._store.accept(self.scope, tools, by, self._now())

    def expire(self, server: str) -> None:
        """Compare all tools of a server with the store when it is admitted next."""
        self._stale.add(server)

    def held(self, server: str) -> Mapping[str, Held]:
        """Return a server's tools that are not offered, by id."""
        return self._held.get(server, {})

    def servers(self) -> list[str]:
        """Return the servers of which tools are held back."""
        return [server for server, held in self._held.items() if held]

    def reports(self, server: str) -> tuple[QuarantinedTool, ...]:
        """Return the tools of a server that are in quarantine, by name."""
        held = self.held(server)
        reports = (quarantined(held[tool_id]) for tool_id in sorted(held))
        return tuple(report for report in reports if report is not None)

    def withheld(self, tool: str) -> str | None:
        """Explain why a tool with this id or listed name is not offered; None for one that is not
        held back."""
        for held in self._held.values():
            for tool_id, one in held.items():
                if tool in (tool_id, listed_names([tool_id])[tool_id]):
                    return why_held(one)
        return None

    async def _read(
        self, server: str, tools: list[ToolDefinition]
    ) -> Mapping[str, ToolDefinition] | None:
        """Return the accepted definitions of these tools; None while they cannot be read."""
        if not tools:
            return {}
        try:
            read = await self._store.meet(self.scope, [declared(t) for t in tools], self._now())
        except StorageUnavailable as outage:
            log.warning("%d tools of %s cannot be compared yet: %s", len(tools), server, outage)
            return None
        return {tool.tool_id: tool for tool in read}


@dataclass(frozen=True)
class Acceptance:
    """Accepts changed definitions. `review` makes a server's connection compare its listing again,
    and announce it if other tools are offered then."""

    quarantine: Quarantine
    review: Callable[[str], Awaitable[None]]
    tools: KnownTools

    async def accept(self, by: str, server: str, wanted: Mapping[str, str]) -> None:
        """Accept definitions, as shown to the approver: a hash for each name of a tool. Idempotent.
        Raises NotFound, Conflict where the server lists another definition by now, Unavailable,
        StorageUnavailable; then nothing is accepted."""
        held = self.held(server)
        chosen = [self._chosen(server, held, name, shown) for name, shown in wanted.items()]
        tools = [one.listed for one in chosen if one is not None]
        if tools:
            await self.quarantine.accept(tools, by)
            log.info("%s accepted %s", by, ", ".join(tool.tool_id for tool in tools))
        self.quarantine.expire(server)
        await self.review(server)

    def held(self, server: str) -> Mapping[str, Held]:
        """Return a server's tools that are not offered, by id. Raises NotFound."""
        known = self.tools.status()
        if server not in known:
            raise NotFound(f"no MCP server {server!r} is configured{did_you_mean(server, known)}")
        return self.quarantine.held(server)

    async def on_tools_listed(self, listed: ToolsListed) -> None:
        """Review a server that another replica lists with other tools: an approver may have
        accepted some there."""
        ours = self.tools.list_tools().get(listed.server)
        if ours is None or listed.scope != self.quarantine.scope:
            return
        if _hashes(ours) != _hashes(listed.tools):
            self.quarantine.expire(listed.server)
            await self.review(listed.server)

    async def review_held(self) -> None:
        """Review every server of which tools are held back: the database was away, or the news of
        an acceptance was lost."""
        for server in self.quarantine.servers():
            self.quarantine.expire(server)
            await self.review(server)

    def _chosen(self, server: str, held: Mapping[str, Held], name: str, shown: str) -> Held | None:
        """Return the tool to accept; None where this definition is accepted already."""
        tool_id = f"{server}:{name}"
        found, offered = held.get(tool_id), self.tools.find(tool_id)
        if found is None:
            if offered is None:
                raise NotFound(f"{server} lists no tool {name!r}")
            if declared_hash(offered) == shown:
                return None
            raise Conflict(f"{tool_id} is not in quarantine: its accepted definition is offered")
        if found.accepted is None:
            raise Unavailable(why_held(found))
        if found.listed.definition_hash != shown:
            raise Conflict(
                f"{tool_id} has changed again since it was shown: see `pml servers diff {server} "
                f"{name}` and accept what it is now"
            )
        return found


def _hashes(tools: tuple[ToolDefinition, ...]) -> set[tuple[str, str]]:
    return {(tool.name, tool.definition_hash) for tool in tools}
