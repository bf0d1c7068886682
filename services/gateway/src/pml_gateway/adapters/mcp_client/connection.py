"""One connection to one upstream MCP server, from its handshake to its end."""

import logging
import math
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version

import anyio
import httpx2
from mcp import Client, Implementation, MCPError
from mcp.client import IncomingMessage
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.subscriptions import ToolsListChanged
from mcp_types import (
    PromptListChangedNotification,
    ResourceListChangedNotification,
    ToolListChangedNotification,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from pml_common.contracts.fault_words import text_of
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_gateway.adapters.mcp_client.listings import set_aside_of
from pml_gateway.adapters.mcp_client.offer_listings import list_offers
from pml_gateway.adapters.mcp_client.server_calls import OnLog, ServerCalls, ignore_log
from pml_gateway.adapters.mcp_client.transport import open_streams
from pml_gateway.adapters.mcp_client.transport_state import TransportState
from pml_gateway.domain.api.mcp_tools import definitions_of
from pml_gateway.domain.servers.circuit import CircuitRules
from pml_gateway.domain.servers.offers import Offers
from pml_gateway.domain.servers.server_config import ServerConfig
from pml_gateway.domain.servers.server_trust import trusts_hints
from pml_gateway.domain.servers.tool_meta import MetaKey, has_meta, shown_with, unstable_keys
from pml_gateway.ports import Caller, CallerSide

log = logging.getLogger(__name__)
_MAX_PAGES = 100

Admit = Callable[[str, tuple[ToolDefinition, ...]], Awaitable[tuple[ToolDefinition, ...]]]
"""From a server and its listing to those of its tools that may be offered; raises nothing."""


def _ignore() -> None:
    """Ignore a change."""


@dataclass(frozen=True)
class Limits:
    """Bounds of every connection. Times in seconds; the last retry delay repeats.

    `connect_timeout_s` allows for a first start that downloads its program. A connection that
    lasted `stable_s` is renewed at once when it ends. After `suspect_after` timed-out calls in a
    row a server must answer a probe within `probe_timeout_s`, or is connected anew.

    At most `concurrency` calls are under way at a time, and `queue` more wait for their turn.

    Calls wait for an absent server until it was absent for `absence_s`; later for one attempt to
    connect, `attempt_s` at most. While calls wait, attempts are the first retry delay apart, later
    `wanted_delay_s`.

    The client of a call has `answer_s` to answer what its server asks it.
    """

    connect_timeout_s: float = 60.0
    retry_delays_s: tuple[float, ...] = (0.5, 1.0, 2.0, 5.0, 15.0, 30.0)
    stable_s: float = 10.0
    concurrency: int = 16
    queue: int = 256
    circuit: CircuitRules = field(default_factory=CircuitRules)
    suspect_after: int = 3
    probe_timeout_s: float = 10.0
    absence_s: float = 15.0
    attempt_s: float = 5.0
    answer_s: float = 300.0
    wanted_delay_s: float = 2.0

    def retry_delay_s(self, failures: int) -> float:
        """Return the delay after so many failures in a row."""
        return self.retry_delays_s[min(failures, len(self.retry_delays_s)) - 1] if failures else 0.0


class UpstreamConnection:
    """A connection shared by many callers, entered and left by one task: the one that awaits
    `run`."""

    def __init__(
        self,
        name: str,
        server: ServerConfig,
        environment: Mapping[str, str],
        limits: Limits,
        admit: Admit,
        auth: httpx2.Auth | None = None,
        on_log: OnLog = ignore_log,
    ) -> None:
        self.transport = TransportState()
        self.client: Client | None = None
        self.tools: tuple[ToolDefinition, ...] = ()
        self.excluded = 0
        self.server_version: str | None = None
        self.declares: tuple[str, ...] = ()
        self.offers = Offers()
        self.shown: Mapping[str, JsonObject] = {}
        self.end_reason = ""
        self._name = name
        self._limits = limits
        self._trusts_hints = trusts_hints(server)
        self._lists = server.tool_lists
        self._admit = admit
        self._admitting = anyio.Lock()
        self._declared: tuple[ToolDefinition, ...] = ()
        self._listed: Sequence[JsonObject] | None = None
        self._unstable: set[MetaKey] = set()
        self._tool_warnings: tuple[str, ...] = ()
        self._offer_warnings: tuple[str, ...] = ()
        self._listing_stale = anyio.Event()
        self._offers_stale = anyio.Event()
        self._probe_wanted = anyio.Event()
        self._probed = anyio.Event()
        self._probed.set()
        self.calls = ServerCalls(name, limits.answer_s, on_log)
        self._refusal = ""
        self._session = Client(
            open_streams(name, server, environment, self.transport, auth),
            read_timeout_seconds=limits.connect_timeout_s,
            message_handler=self._on_message,
            sampling_callback=self.calls.sample,
            elicitation_callback=self.calls.elicit,
            logging_callback=self.calls.on_log,
            client_info=Implementation(name="pml-gateway", version=version("pml-gateway")),
            cache=None,
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """The items of the server's listings that are not used, and why."""
        return (*self._tool_warnings, *self._offer_warnings)

    async def run(
        self,
        *,
        on_ready: Callable[[], None],
        on_tools: Callable[[], None] = _ignore,
        on_offers: Callable[[], None] = _ignore,
        on_end: Callable[[], None] = _ignore,
    ) -> None:
        """Connect and stay connected until either side ends it; raises what the SDK raises.

        `client` can be used between `on_ready` and `on_end`; `on_tools` and `on_offers` are called
        when `tools` or `offers` changed in between.
        """
        timeout = self._limits.connect_timeout_s
        with anyio.CancelScope(deadline=anyio.current_time() + timeout) as connecting:
            async with self._session as client:
                self.transport.version = client.protocol_version
                declared = client.server_capabilities.model_dump(by_alias=True, exclude_none=True)
                self.declares = tuple(sorted(declared))
                self.server_version = client.server_info.version if client.server_info else None
                await self._list_admitted(client)
                await self._list_offers(client)
                connecting.deadline = math.inf
                self.client = client
                on_ready()
                try:
                    await self._watch(client, on_tools, on_offers)
                finally:
                    self.client = None
                    on_end()
        if connecting.cancelled_caught:
            raise TimeoutError(f"it did not complete the handshake within {timeout:g} s")

    def close(self, reason: str) -> None:
        """Close this connection; its owner makes a new one."""
        self.end_reason = reason
        self.transport.ended.set()

    @contextmanager
    def calling(self, side: CallerSide | None, caller: Caller | None) -> Generator[None]:
        """Count a caller's request as made on this connection until the context exits."""
        try:
            with self.calls.entered(side, caller):
                yield
        finally:
            if self._refusal and not self.calls.count:
                self.close(self._refusal)

    async def close_when_idle(self, reason: str, within_s: float) -> None:
        """Close this connection, whose server refuses calls, once none is under way on it; wait
        `within_s` at most for that."""
        self._refusal = reason
        if not self.calls.count:
            self.close(reason)
        with anyio.move_on_after(within_s):
            await self.transport.ended.wait()

    def probe(self) -> None:
        """Send a probe to the server; end this connection if it is not answered."""
        if self._probed.is_set():
            self._probed = anyio.Event()
            self._probe_wanted.set()

    async def probed(self) -> None:
        """Wait while a probe is under way."""
        await self._probed.wait()

    async def _watch(
        self, client: Client, on_tools: Callable[[], None], on_offers: Callable[[], None]
    ) -> None:
        async with anyio.create_task_group() as watchers:
            watchers.start_soon(self._keep_tools_current, client, on_tools)
            watchers.start_soon(self._keep_offers_current, client, on_offers)
            watchers.start_soon(self._probe_on_demand, client)
            if _can_subscribe(client):
                watchers.start_soon(self._subscribe, client)
            await self.transport.ended.wait()
            watchers.cancel_scope.cancel()

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, ToolListChangedNotification):
            self._listing_stale.set()
        elif isinstance(message, ResourceListChangedNotification | PromptListChangedNotification):
            self._offers_stale.set()

    async def _keep_offers_current(self, client: Client, on_offers: Callable[[], None]) -> None:
        while True:
            await self._offers_stale.wait()
            self._offers_stale = anyio.Event()
            await self._list_offers(client)
            on_offers()

    async def _list_offers(self, client: Client) -> None:
        warnings: list[str] = []
        self.offers = await list_offers(self._name, client, warnings.append)
        self._log_new(warnings)
        self._offer_warnings = tuple(warnings)

    async def _keep_tools_current(self, client: Client, on_tools: Callable[[], None]) -> None:
        while True:
            await self._listing_stale.wait()
            self._listing_stale = anyio.Event()
            try:
                await self._list_admitted(client)
            except (MCPError, ValidationError) as error:
                why = text_of(error)
                log.warning("%s changed its tools but cannot list them: %s", self._name, why)
            else:
                on_tools()

    async def review(self) -> bool:
        """Ask again which of the listed tools may be offered; return whether `tools` changed."""
        async with self._admitting:
            before = self.tools
            self.tools = await self._admit(self._name, self._declared)
            return self.tools != before

    def find(self, tool: str) -> ToolDefinition | None:
        """Return the definition of an offered tool, as this connection lists it."""
        return next((each for each in self.tools if each.name == tool), None)

    def holds_back(self, tool: str) -> bool:
        """Whether the server lists a tool that is not offered."""
        return self.find(tool) is None and any(each.name == tool for each in self._declared)

    async def _list_admitted(self, client: Client) -> None:
        async with self._admitting:
            self._declared = await self._list(client)
            self.tools = await self._admit(self._name, self._declared)

    async def _subscribe(self, client: Client) -> None:
        """Keep a stream of changes open; after a gap between two streams, list the tools again."""
        failures = 0
        while True:
            try:
                async with client.listen(
                    tools_list_changed=True,
                    prompts_list_changed=True,
                    resources_list_changed=True,
                ) as changes:
                    if failures:
                        self._listing_stale.set()
                        self._offers_stale.set()
                    failures = 0
                    async for change in changes:
                        stale = isinstance(change, ToolsListChanged)
                        (self._listing_stale if stale else self._offers_stale).set()
            except (MCPError, SubscriptionLost, TimeoutError) as error:
                log.debug("%s: no stream of changes: %s", self._name, error)
            failures += 1
            await anyio.sleep(self._limits.retry_delay_s(failures))

    async def _probe_on_demand(self, client: Client) -> None:
        while True:
            try:
                await self._probe_wanted.wait()
                self._probe_wanted = anyio.Event()
                with anyio.fail_after(self._limits.probe_timeout_s):
                    await client.list_tools()
            except TimeoutError:
                self.close(f"it answered nothing for {self._limits.probe_timeout_s:g} s")
            except (MCPError, ValidationError) as error:
                log.debug("%s answered a probe with: %s", self._name, text_of(error))
            finally:
                self._probed.set()

    async def _list(self, client: Client) -> tuple[ToolDefinition, ...]:
        """List the tools; twice at first if `_meta` may differ between listings."""
        listed, aside = await self._pages(client)
        if self._listed is None and has_meta(listed):
            self._listed, (listed, aside) = listed, await self._pages(client)
        self._unstable |= unstable_keys(self._listed or (), listed)
        self._listed = listed
        self.shown = {str(tool.get("name")): shown_with(tool) for tool in listed}
        tools, faults = definitions_of(
            self._name, listed, trusted=self._trusts_hints, unstable=self._unstable
        )
        left_out = (
            f"{tool}: _meta {key!r} differs between listings, so it is not part of the definition"
            for tool, key in sorted(self._unstable)
        )
        unmatched = (
            f"its entry's lists of tools name {pattern!r}, which no tool matches"
            for pattern in self._lists.without_tool([tool.name for tool in tools])
        )
        warnings = (*aside, *faults, *left_out, *unmatched)
        self._log_new(warnings)
        self._tool_warnings = warnings
        offered = tuple(tool for tool in tools if self._lists.offers(tool.name))
        self.excluded = len(tools) - len(offered)
        return offered

    def _log_new(self, warnings: Sequence[str]) -> None:
        for warning in warnings:
            if warning not in self.warnings:
                log.warning("%s: %s", self._name, warning)

    async def _pages(self, client: Client) -> tuple[Sequence[JsonObject], Sequence[str]]:
        """Return all listed tools, and for each malformed one why it is set aside."""
        if client.server_capabilities.tools is None:
            return (), ()
        listed: list[JsonObject] = []
        aside: list[str] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = await client.list_tools(cursor=cursor)
            listed += [tool.model_dump(mode="json", by_alias=True) for tool in page.tools]
            aside += set_aside_of(page)
            cursor = page.next_cursor
            if cursor is None:
                break
        else:
            log.warning("%s lists more than %d pages of tools: cut", self._name, _MAX_PAGES)
        return listed, aside


def _can_subscribe(client: Client) -> bool:
    can = client.server_capabilities
    lists = (can.tools, can.resources, can.prompts)
    modern = client.protocol_version in MODERN_PROTOCOL_VERSIONS
    return modern and any(each is not None and each.list_changed for each in lists)
