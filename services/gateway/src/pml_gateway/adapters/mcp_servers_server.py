"""One MCP server as the gateway keeps it: connected anew as long as it lives, called by many."""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime

import anyio
from mcp import Client

from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_gateway.adapters.mcp_servers_errors import NotConnected, in_words, outcome_of_error
from pml_gateway.adapters.mcp_servers_link import Limits, Link
from pml_gateway.domain.server_config import ServerConfig
from pml_gateway.domain.server_trust import trusts_hints
from pml_gateway.domain.tool_result import outcome_of
from pml_gateway.ports import ServerState, ServerStatus

log = logging.getLogger(__name__)

_ATTEMPTS = 2

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
        self._state: ServerState = "connecting"
        self._error: str | None = None
        self._since = datetime.now(UTC)
        self._turned = asyncio.Event()
        self._news = asyncio.Event()
        self._link: Link | None = None
        self._slots = asyncio.Semaphore(limits.concurrency)
        self._requests: set[asyncio.Task[ToolOutcome]] = set()
        self._timeouts_in_row = 0
        self._life = anyio.CancelScope()
        self._closing = False
        self._owner: asyncio.Task[None] | None = None

    @property
    def status(self) -> ServerStatus:
        """How it stands now."""
        return ServerStatus(
            state=self._state,
            error=self._error,
            tools=len(self.tools),
            since=self._since,
            hints_trusted=trusts_hints(self._server),
            warnings=self._warnings,
        )

    def start(self) -> None:
        """Begin to connect, in the background."""
        self._owner = asyncio.create_task(self._own(), name=f"mcp-{self.name}")

    async def settled(self) -> None:
        """Wait for the end of an attempt to connect that is under way."""
        while self._state == "connecting":
            await self._turned.wait()

    async def close(self) -> None:
        """Disconnect; a child process is gone when this returns."""
        self._closing = True
        self._set("failed", "the gateway is shutting down")
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
            connecting = self._state == "connecting"
            why = "is still connecting" if connecting else f"had no time for {tool!r}"
            message = f"MCP server {self.name!r} {why} after {timeout_s:g} s; nothing was called"
            return ToolOutcome(status="timeout", message=message)
        self._timeouts_in_row += 1
        if self._link and self._timeouts_in_row >= self._limits.suspect_after:
            self._link.suspect()
        message = f"{self.name}:{tool} did not answer within {timeout_s:g} s; it was cancelled"
        return ToolOutcome(status="timeout", message=message)

    async def _request(
        self, tool: str, args: JsonObject, timeout_s: float, sent: asyncio.Event
    ) -> ToolOutcome:
        """One call; made again, once, where the server certainly never saw it."""
        reason = NotConnected()
        async with self._slots:
            for _ in range(_ATTEMPTS):
                try:
                    return await self._attempt(tool, args, timeout_s, sent)
                except NotConnected as error:
                    reason = error
        message = (
            f"MCP server {self.name!r} is not connected: {reason}. Nothing was called. "
            "The gateway keeps trying; check that the server runs and that its entry is right"
        )
        return ToolOutcome(status="tool_error", message=message)

    async def _attempt(
        self, tool: str, args: JsonObject, timeout_s: float, sent: asyncio.Event
    ) -> ToolOutcome:
        link, client = await self._connected()
        sent.set()
        try:
            result = await client.call_tool(tool, args, read_timeout_seconds=timeout_s)
            return outcome_of(result.model_dump(mode="json", by_alias=True, exclude_none=True))
        except Exception as error:
            log.debug("%s:%s raised", self.name, tool, exc_info=True)
            outcome = outcome_of_error(error, link.notes.fault)
            if outcome is not None:
                return outcome
            sent.clear()
            if len(self._requests) == 1:
                link.end(str(error))
            raise NotConnected(str(error)) from error

    async def _connected(self) -> tuple[Link, Client]:
        """A connection that can be used, waited for while one is being made."""
        while True:
            link = self._link
            if link is not None:
                await link.trusted()
                if link.client is not None and not link.notes.ended.is_set():
                    return link, link.client
            if self._state == "failed":
                raise NotConnected(self._error)
            await self._turned.wait()

    async def _own(self) -> None:
        failures = 0
        with self._life:
            async with anyio.create_task_group() as companions:
                companions.start_soon(self._announce)
                while True:
                    lasted_s, reason = await self._hold_one()
                    failures = 0 if lasted_s >= self._limits.stable_s else failures + 1
                    again_soon = lasted_s > 0 and failures <= 1
                    self._turn("connecting" if again_soon else "failed", reason)
                    await asyncio.sleep(self._limits.retry_delay_s(failures))

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
            self._turn("ready", None)

        def on_tools() -> None:
            self.tools, self._warnings = link.tools, link.warnings
            self._news.set()

        def on_end() -> None:
            self._link = None
            self._turn("connecting", link.end_reason or link.notes.fault or None)

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
                failures = 0
            except Exception:
                log.exception("%s: its tools could not be announced; trying again", self.name)
                failures += 1
                self._news.set()
                await asyncio.sleep(self._limits.retry_delay_s(failures))

    def _turn(self, state: ServerState, error: str | None) -> None:
        if self._closing:
            return
        if (self._state, self._error) != (state, error):
            level = logging.WARNING if state == "failed" else logging.INFO
            log.log(level, "MCP server %s: %s%s", self.name, state, f": {error}" if error else "")
        self._set(state, error)

    def _set(self, state: ServerState, error: str | None) -> None:
        if self._state != state:
            self._since = datetime.now(UTC)
        self._state, self._error = state, error
        self._turned.set()
        self._turned = asyncio.Event()
