"""One MCP server as the gateway keeps it: connected anew as long as it lives, called by many."""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

import anyio
from mcp import Client

from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_gateway.adapters.mcp_client.connection import Limits, Link
from pml_gateway.adapters.mcp_client.errors import (
    TOOK_EFFECT,
    NotConnected,
    Refused,
    in_words,
    outcome_of_error,
)
from pml_gateway.adapters.mcp_client.presence import Presence
from pml_gateway.domain.servers.server_config import ServerConfig
from pml_gateway.domain.servers.server_trust import trusts_hints
from pml_gateway.domain.tool_calls.repeatable import NotSent, repeatable
from pml_gateway.domain.tool_calls.tool_result import outcome_of
from pml_gateway.ports import ServerStatus

log = logging.getLogger(__name__)

_LEFT_WITHIN_S = 1.0
"""For a connection whose server takes no calls to be left by the calls that it still has."""

OnTools = Callable[[str, tuple[ToolDefinition, ...]], Awaitable[None]]


class McpServer:
    """An owner task connects and reconnects; callers share its connection.

    The SDK's connections are bound to the task that entered them: no other task enters or leaves.
    """

    def __init__(
        self,
        name: str,
        server: ServerConfig,
        *,
        environment: Mapping[str, str],
        limits: Limits,
        on_tools: OnTools,
    ) -> None:
        self.name = name
        self.tools: tuple[ToolDefinition, ...] = ()
        self._server = server
        self._environment = environment
        self._limits = limits
        self._on_tools = on_tools
        self._warnings: tuple[str, ...] = ()
        self._presence = Presence(name, limits)
        self._announced = False
        self._news = asyncio.Event()
        self._link: Link | None = None
        self._slots = asyncio.Semaphore(limits.concurrency)
        self._requests: set[asyncio.Task[ToolOutcome]] = set()
        self._timeouts_in_row = 0
        self._life = anyio.CancelScope()
        self._owner: asyncio.Task[None] | None = None

    @property
    def status(self) -> ServerStatus:
        """How it stands now."""
        return ServerStatus(
            state=self._presence.state,
            error=self._presence.error,
            tools=len(self.tools),
            since=self._presence.since,
            hints_trusted=trusts_hints(self._server),
            warnings=self._warnings,
            announced=self._announced,
        )

    def start(self) -> None:
        """Begin to connect, in the background."""
        self._owner = asyncio.create_task(self._own(), name=f"mcp-{self.name}")

    async def settled(self) -> None:
        """Wait for the end of an attempt to connect that is under way."""
        await self._presence.settled()

    async def reach(self, timeout_s: float) -> None:
        """Wait until it can be called; see `ports.ToolServers`."""
        with suppress(TimeoutError, NotConnected):
            async with asyncio.timeout(timeout_s):
                await self._connected()

    async def close(self) -> None:
        """Disconnect; a child process is gone when this returns."""
        self._presence.close("the gateway is shutting down")
        self._life.cancel()
        if self._owner is not None:
            await self._owner
        await asyncio.gather(*self._requests, return_exceptions=True)

    async def call(self, tool: str, args: JsonObject, timeout_s: float) -> ToolOutcome:
        """Call one of its tools; answers within `timeout_s`, whatever the server does."""
        sent = asyncio.Event()
        request = asyncio.create_task(self._request(tool, args, timeout_s, sent))
        self._requests.add(request)
        request.add_done_callback(self._requests.discard)
        try:
            await asyncio.wait({request}, timeout=timeout_s)
            answered = request.done()
        finally:
            request.cancel()
        if answered:
            self._timeouts_in_row = 0
            return request.result()
        return self._timed_out(tool, timeout_s, sent.is_set())

    def _timed_out(self, tool: str, timeout_s: float, sent: bool) -> ToolOutcome:
        if not sent:
            why = {
                "connecting": "is still connecting",
                "failed": f"is not connected ({self._presence.error})",
                "ready": f"had no time for {tool!r}",
            }[self._presence.state]
            message = f"MCP server {self.name!r} {why} after {timeout_s:g} s; nothing was called"
            return NotSent(status="timeout", message=message)
        self._timeouts_in_row += 1
        if self._link and self._timeouts_in_row >= self._limits.suspect_after:
            self._link.suspect()
        message = f"{self.name}:{tool} did not answer within {timeout_s:g} s; it was cancelled"
        if self._repeatable(tool):
            return ToolOutcome(status="timeout", message=message)
        return ToolOutcome(status="unknown", message=f"{message}, {TOOK_EFFECT}")

    def _repeatable(self, name: str) -> bool:
        return repeatable(next((tool for tool in self.tools if tool.name == name), None))

    async def _request(
        self, tool: str, args: JsonObject, timeout_s: float, sent: asyncio.Event
    ) -> ToolOutcome:
        """One call; made again where the server certainly never saw it, for as long as an absence
        of the server is waited for, and once at least."""
        until = time.monotonic() + self._limits.absence_s
        refusals = 0
        async with self._slots:
            while True:
                try:
                    return await self._attempt(tool, args, timeout_s, sent)
                except Refused as error:
                    refusals += 1
                    reason = str(error)
                    if refusals > 1 and time.monotonic() > until:
                        break
                except NotConnected as error:
                    reason = str(error)
                    break
        message = (
            f"MCP server {self.name!r} is not connected: {reason}. Nothing was called. "
            "The gateway keeps trying; check that the server runs and that its entry is right"
        )
        return NotSent(status="tool_error", message=message)

    async def _attempt(
        self, tool: str, args: JsonObject, timeout_s: float, sent: asyncio.Event
    ) -> ToolOutcome:
        """Raises NotConnected, Refused."""
        link, client = await self._connected()
        sent.set()
        try:
            with link.calling():
                result = await client.call_tool(tool, args, read_timeout_seconds=timeout_s)
            return outcome_of(result.model_dump(mode="json", by_alias=True, exclude_none=True))
        except Exception as error:
            log.debug("%s:%s raised", self.name, tool, exc_info=True)
            again = self._repeatable(tool)
            outcome = outcome_of_error(error, link.notes.fault, repeatable=again)
            if outcome is not None:
                return outcome
            sent.clear()
            await link.refused(str(error), _LEFT_WITHIN_S)
            raise Refused(str(error)) from error

    async def _connected(self) -> tuple[Link, Client]:
        """A connection that can be used, waited for while the server may come back. Raises
        NotConnected."""
        asked = self._presence.ask()
        while True:
            link = self._link
            if link is not None:
                await link.trusted()
                if link.client is not None and not link.notes.ended.is_set():
                    return link, link.client
            await self._presence.change(asked)

    async def _own(self) -> None:
        failures = 0
        with self._life:
            async with anyio.create_task_group() as companions:
                companions.start_soon(self._announce)
                while True:
                    lasted_s, reason = await self._hold_one()
                    failures = 0 if lasted_s >= self._limits.stable_s else failures + 1
                    was_ready = lasted_s > 0
                    again_soon = was_ready and failures <= 1
                    self._presence.ended(reason, was_ready=was_ready, again_soon=again_soon)
                    await self._presence.pause(failures)

    async def _hold_one(self) -> tuple[float, str]:
        """One connection from start to end: the seconds it could be used, and why it ended."""
        link = Link(self.name, self._server, self._environment, self._limits)
        ready_at = math.inf

        def on_ready() -> None:
            nonlocal ready_at
            ready_at = time.monotonic()
            self._link = link
            self._timeouts_in_row = 0
            on_tools()
            self._presence.ready()

        def on_tools() -> None:
            self.tools, self._warnings = link.tools, link.warnings
            self._news.set()

        def on_end() -> None:
            self._link = None
            self._presence.lost(link.end_reason or link.notes.fault or None)

        try:
            await link.hold(on_ready, on_tools, on_end)
            reason = link.end_reason or link.notes.fault or "it closed the connection"
        except Exception as error:
            log.debug("%s: connection ended", self.name, exc_info=True)
            reason = link.notes.fault or in_words(error)
        words = link.notes.last_words
        told = f"{reason} ({words})" if words and words not in reason else reason
        return max(0.0, time.monotonic() - ready_at), told

    async def _announce(self) -> None:
        """Tell the tools to whoever listens; what it could not take is told again, newest first."""
        failures = 0
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                await self._on_tools(self.name, self.tools)
                self._announced = True
                failures = 0
            except Exception:
                log.exception("%s: its tools could not be announced; trying again", self.name)
                failures += 1
                self._news.set()
                await asyncio.sleep(self._limits.retry_delay_s(failures))
