"""One upstream MCP server: keeps a connection to it, and shares that among calls."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

import anyio
from mcp import Client

from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_gateway.adapters.mcp_client.announcements import (
    Announcements,
    OfferAnnouncements,
    OnOffers,
    OnTools,
)
from pml_gateway.adapters.mcp_client.attempts import Attempts, Listeners
from pml_gateway.adapters.mcp_client.availability import Availability
from pml_gateway.adapters.mcp_client.call_gate import CallGate, TurnedAway, wait_within
from pml_gateway.adapters.mcp_client.calling import Asked, called
from pml_gateway.adapters.mcp_client.connection import Admit, Limits, UpstreamConnection
from pml_gateway.adapters.mcp_client.errors import (
    EFFECT_UNKNOWN,
    NotConnected,
    Refused,
    changed_meanwhile,
    excluded,
    needs_login_at,
    not_connected,
    outcome_of_error,
)
from pml_gateway.adapters.mcp_client.offer_requests import OfferRequests
from pml_gateway.adapters.mcp_client.server_calls import OnLog
from pml_gateway.adapters.process_logins import ProcessLogins
from pml_gateway.domain.api.log_levels import LogLevel
from pml_gateway.domain.api.offered import with_links
from pml_gateway.domain.servers.offers import Offers
from pml_gateway.domain.servers.server_config import ServerConfig
from pml_gateway.domain.servers.server_trust import trusts_hints
from pml_gateway.domain.tool_calls.repeatable import NotSent, repeatable
from pml_gateway.domain.tool_calls.tool_result import outcome_of
from pml_gateway.ports import CallOrigin, Logins, ServerStatus, Transport

log = logging.getLogger(__name__)

_IDLE_WITHIN_S = 1.0
"""Time for the calls under way on a connection whose server refuses calls."""

Link = Callable[[str, str], str]
"""From a server and the URI of its resource to the URI by which our clients read it."""


class UpstreamServer:
    """An owner task connects and reconnects; callers share its connection.

    The SDK's connections are bound to the task that entered them: only the owner task enters and
    leaves them.
    """

    def __init__(
        self,
        name: str,
        server: ServerConfig,
        *,
        environment: Mapping[str, str],
        limits: Limits,
        on_tools: OnTools,
        on_offers: OnOffers,
        on_log: OnLog,
        link: Link,
        admit: Admit,
        title: str | None = None,
        logins: Logins | None = None,
    ) -> None:
        self.name = name
        self.config = server
        self._title = title
        self._server = server
        self._excluded = 0
        self._attempts = Attempts(
            name, server, environment, limits, admit, logins or ProcessLogins(), on_log
        )
        self._listeners = Listeners(
            self._set_ready, self._take_tools, self._take_offers, self._set_lost
        )
        self._limits = limits
        self._link = partial(link, name)
        self._warnings: tuple[str, ...] = ()
        self._availability = Availability(name, limits)
        self._announcements = Announcements(name, on_tools, limits)
        self._offer_announcements = OfferAnnouncements(on_offers)
        self._transport: Transport = server.type
        self._last: UpstreamConnection | None = None
        self._connection: UpstreamConnection | None = None
        self._gate = CallGate(name, limits)
        self.requests = OfferRequests(name, self._gate, self._connected)
        self._requests: set[asyncio.Task[ToolOutcome]] = set()
        self._timeouts_in_row = 0
        self._lifetime = anyio.CancelScope()
        self._owner: asyncio.Task[None] | None = None

    @property
    def tools(self) -> tuple[ToolDefinition, ...]:
        """Its tools, as last listed."""
        return self._announcements.tools

    @property
    def offers(self) -> Offers:
        """Its resources and prompts, as it last listed them."""
        return self._offer_announcements.offers

    def shown(self, tool: str) -> JsonObject:
        """Return what it shows with a tool beside the definition."""
        return {} if self._connection is None else self._connection.shown.get(tool, {})

    @property
    def status(self) -> ServerStatus:
        """Its present status."""
        last = self._last
        return ServerStatus(
            state=self._availability.state,
            error=self._availability.error,
            tools=len(self.tools),
            since=self._availability.since,
            hints_trusted=trusts_hints(self._server),
            warnings=self._warnings,
            announced=self._announcements.made,
            circuit=self._gate.state,
            circuit_fault=self._gate.fault,
            calls_under_way=self._gate.under_way,
            calls_queued=self._gate.queued,
            timeout_s=self._server.timeout,
            title=self._title,
            excluded=self._excluded,
            transport=self._transport,
            protocol=None if last is None else last.transport.version,
            version=None if last is None else last.server_version,
            declares=() if last is None else last.declares,
            needs_login=self._availability.parked,
            prefixed=self._server.prefix,
        )

    def start(self) -> None:
        """Begin to connect, in the background."""
        self._owner = asyncio.create_task(self._stay_connected(), name=f"mcp-{self.name}")

    async def settled(self) -> None:
        """Wait until no attempt to connect is under way."""
        await self._availability.settled()

    async def reach(self, timeout_s: float) -> None:
        """Wait until it can be called."""
        with suppress(TimeoutError, NotConnected):
            async with asyncio.timeout(timeout_s):
                await self._connected()

    def retry(self) -> None:
        """Try to connect now, if it is not connected."""
        self._availability.retry()

    async def review(self) -> None:
        """Ask again which of its tools may be offered; announce them if they are others."""
        connection = self._connection
        if connection is not None and await connection.review():
            self._take_tools(connection)

    async def close(self) -> None:
        """Disconnect; a child process has ended when this returns."""
        self._availability.close("the gateway is shutting down")
        self._lifetime.cancel()
        if self._owner is not None:
            await self._owner
        await asyncio.gather(*self._requests, return_exceptions=True)

    async def want_logs(self, level: LogLevel) -> None:
        """Have it log messages of this level and above."""
        connection = self._connection
        if connection is not None and connection.client is not None:
            await connection.calls.want(level, connection.client)

    async def call(
        self, tool: str, args: JsonObject, timeout_s: float, origin: CallOrigin | None = None
    ) -> ToolOutcome:
        """Call one of its tools; answers within `timeout_s`, and within the server's own time limit
        once the call is sent, whatever the server does."""
        if not self._server.tool_lists.offers(tool):
            return NotSent(status="refused", message=excluded(self.name, tool))
        sent = asyncio.Event()
        judged = self._find(tool)
        asked = Asked(tool, args, timeout_s, judged, sent, origin)
        request = asyncio.create_task(self._request(asked))
        self._requests.add(request)
        request.add_done_callback(self._requests.discard)
        try:
            limit_s = await wait_within(request, sent, timeout_s, self._server.timeout)
            answered = request.done()
        finally:
            request.cancel()
        if answered:
            self._timeouts_in_row = 0
            return request.result()
        return self._timed_out(tool, limit_s, sent.is_set())

    def _timed_out(self, tool: str, timeout_s: float, sent: bool) -> ToolOutcome:
        if not sent:
            why = {
                "connecting": "is still connecting",
                "failed": f"is not connected ({self._availability.error})",
                "ready": f"was busy and did not get to {tool!r}",
            }[self._availability.state]
            message = f"MCP server {self.name!r} {why} after {timeout_s:g} s; nothing was called"
            return NotSent(status="timeout", message=message)
        self._timeouts_in_row += 1
        self._gate.unanswered(f"{tool} did not answer within {timeout_s:g} s")
        if self._connection and self._timeouts_in_row >= self._limits.suspect_after:
            self._connection.probe()
        message = f"{self.name}:{tool} did not answer within {timeout_s:g} s; it was cancelled"
        if self._repeatable(tool):
            return ToolOutcome(status="timeout", message=message)
        return ToolOutcome(status="unknown", message=f"{message}, {EFFECT_UNKNOWN}")

    def _repeatable(self, name: str) -> bool:
        return repeatable(self._find(name))

    def _find(self, name: str) -> ToolDefinition | None:
        return next((tool for tool in self.tools if tool.name == name), None)

    async def _request(self, asked: Asked) -> ToolOutcome:
        """Make one call; again if the server certainly never received it, at least once and for up
        to `absence_s`."""
        until = time.monotonic() + self._limits.absence_s
        refusals = 0
        try:
            async with self._gate.entered():
                while True:
                    try:
                        return await self._attempt(asked)
                    except Refused as error:
                        refusals += 1
                        reason = str(error)
                        if refusals > 1 and time.monotonic() > until:
                            break
                    except NotConnected as error:
                        reason = str(error)
                        break
        except TurnedAway as away:
            return NotSent(status="tool_error", message=f"{away}. Nothing was called")
        return NotSent(status="tool_error", message=not_connected(self.name, reason))

    async def _attempt(self, asked: Asked) -> ToolOutcome:
        """Send the call once, if its tool is still the one that was judged: the server may have
        come back as another while the call waited for it. Raises NotConnected, Refused."""
        connection, client = await self._connected()
        tool = asked.tool
        listed = connection.find(tool)
        changed = asked.judged is not None and listed is not None and listed != asked.judged
        if changed or connection.holds_back(tool):
            return NotSent(status="refused", message=changed_meanwhile(self.name, tool))
        asked.sent.set()
        began = time.monotonic()
        try:
            if asked.side is not None and asked.side.logs is not None:
                await connection.calls.want(asked.side.logs.level, client)
            with connection.calling(asked.side, asked.caller):
                answer = await called(client, self.name, asked)
            self._gate.answered()
            return outcome_of(with_links(answer, self._link))
        except Exception as error:
            log.debug("%s:%s raised", self.name, tool, exc_info=True)
            again = self._repeatable(tool)
            outcome = outcome_of_error(error, connection.transport.fault, repeatable=again)
            if outcome is not None:
                self._gate.failed(error, began, connection.transport.fault)
                return outcome
            asked.sent.clear()
            await connection.close_when_idle(str(error), _IDLE_WITHIN_S)
            raise Refused(str(error)) from error

    async def _connected(self) -> tuple[UpstreamConnection, Client]:
        """Return a usable connection, waiting while the server may come back. Raises
        NotConnected."""
        demand = self._availability.demand()
        while True:
            connection = self._connection
            if connection is not None:
                await connection.probed()
                if connection.client is not None and not connection.transport.ended.is_set():
                    return connection, connection.client
            await self._availability.wait_for_change(demand)

    async def _stay_connected(self) -> None:
        failures = 0
        with self._lifetime:
            async with anyio.create_task_group() as companions:
                companions.start_soon(self._announcements.run)
                companions.start_soon(self._offer_announcements.run)
                while True:
                    end = await self._attempts.connect(self._listeners)
                    if end.needs_login:
                        self._availability.park(needs_login_at(self.name, self._server))
                        await self._availability.unparked(self._attempts.has_other_login)
                        continue
                    failures = 0 if end.lasted_s >= self._limits.stable_s else failures + 1
                    again_soon = end.was_ready and failures <= 1
                    self._availability.set_ended(
                        end.reason, was_ready=end.was_ready, again_soon=again_soon
                    )
                    await self._availability.pause(failures)

    def _set_ready(self, connection: UpstreamConnection, transport: Transport) -> None:
        self._connection = connection
        self._timeouts_in_row = 0
        self._transport, self._last = transport, connection
        self._take_tools(connection)
        self._take_offers(connection)
        self._availability.set_ready()

    def _set_lost(self, connection: UpstreamConnection) -> None:
        self._connection = None
        self._availability.set_lost(connection.end_reason or connection.transport.fault or None)

    def _take_tools(self, connection: UpstreamConnection) -> None:
        self._warnings, self._excluded = connection.warnings, connection.excluded
        self._announcements.set(connection.tools)

    def _take_offers(self, connection: UpstreamConnection) -> None:
        self._warnings = connection.warnings
        self._offer_announcements.set(connection.offers)
