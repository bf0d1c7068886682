"""PML's own MCP server, which agents connect to: Streamable HTTP at `/mcp`."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from mcp import MCPError
from mcp.server import InitializationOptions, NotificationOptions, Server, ServerRequestContext
from mcp.server.context import HandlerResult
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    CallToolRequestParams,
    CallToolResult,
    EmptyResult,
    ListToolsResult,
    PaginatedRequestParams,
    ServerCapabilities,
    SetLevelRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)
from opentelemetry import trace
from opentelemetry.trace import SpanKind
from starlette.routing import Route
from starlette.types import Receive, Send
from starlette.types import Scope as HttpScope
from typing_extensions import override

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.client_sessions import SessionEnded
from pml_common.errors import Retryable
from pml_common.telemetry import vocabulary
from pml_common.telemetry.spans import spanning
from pml_gateway.application.client_sessions import Sessions
from pml_gateway.domain.api.errors import Forbidden, InvalidRequest, Unavailable
from pml_gateway.domain.api.listed_tools import (
    LIST_HEADER,
    LIST_PARAMETER,
    ListMode,
    list_mode,
)
from pml_gateway.domain.api.mcp_tasks import TaskBegun
from pml_gateway.domain.servers.offers import Offers
from pml_gateway.entrypoints.mcp.asking import Asking
from pml_gateway.entrypoints.mcp.client_messages import ClientMessages
from pml_gateway.entrypoints.mcp.client_requests import ClientRequests
from pml_gateway.entrypoints.mcp.http_exchange import exchange_of
from pml_gateway.entrypoints.mcp.http_sessions import HttpSessions
from pml_gateway.entrypoints.mcp.open_calls import (
    ANSWER_WITHIN_S,
    BEAT_S,
    OpenCalls,
)
from pml_gateway.entrypoints.mcp.pass_through import CACHE_HINTS, McpOffers
from pml_gateway.entrypoints.mcp.request_states import RequestStates, ServerStates
from pml_gateway.entrypoints.mcp.server_inputs import InputAsked, PassedInputs
from pml_gateway.entrypoints.mcp.session_streams import (
    PROMPTS_CHANGED,
    RESOURCES_CHANGED,
    TOOLS_CHANGED,
    USUAL_LIMITS,
    SessionStreams,
    StreamLimits,
)
from pml_gateway.entrypoints.mcp.tasks import Tasks
from pml_gateway.entrypoints.mcp.tools import McpTools
from pml_gateway.ports import (
    AgentApi,
    AllowedTools,
    Caller,
    Callers,
    CallerSide,
    InputNeeded,
    LogMessage,
    OfferedToCallers,
    Replicas,
    TaskApi,
)

PATH = "/mcp"
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")

INSTRUCTIONS: Final = """\
Begin with pml_discover: it finds capabilities and tools for what you want, each with a line that
calls it. PML runs small TypeScript programs that call the tools of MCP servers, and stores those
that succeed as capabilities (pml_list_capabilities lists them). Run a capability or code with
pml_execute; where the answer is
`approval_required` or `running`, its `next` names the call that returns the result
(pml_get_task_result); pml_cancel stops it. Name what has no name with
pml_curate_capabilities. Every other tool here, `server_tool`, is also callable inside such a
program by its id, as `await mcp.call("server:tool", {...})`."""

Context = ServerRequestContext[Any, Any]

_tracer = trace.get_tracer(__name__)


class _Server(Server[Any]):
    """The SDK's server, which tells clients with a handshake that lists change, too, and none that
    it has updates of single resources."""

    @override
    def get_capabilities(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
        *,
        protocol_version: str | None = None,
    ) -> ServerCapabilities:
        """Return what this server can do."""
        can = super().get_capabilities(
            notification_options,
            experimental_capabilities,
            extensions,
            protocol_version=protocol_version,
        )
        if can.resources is None:
            return can
        resources = can.resources.model_copy(update={"subscribe": False})
        return can.model_copy(update={"resources": resources})

    @override
    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Return what `initialize` answers."""
        changing = notification_options or NotificationOptions(True, True, True)
        return super().create_initialization_options(
            changing, experimental_capabilities, extensions
        )


class McpEndpoint:
    """ASGI endpoint; serves while `running`.

    `hosts` are the names accepted in the Host header and in the Origin of web pages, with any port,
    so that a page of another site cannot call this endpoint under a name of its own (DNS
    rebinding). `*` accepts every name. Pages of `origins` may call it, too.
    """

    def __init__(
        self,
        *,
        agent: AgentApi,
        allowed: AllowedTools,
        offers: OfferedToCallers,
        callers: Callers,
        sessions: Sessions,
        replicas: Replicas,
        now: Callable[[], datetime],
        version: str,
        states: RequestStates,
        tasks: TaskApi,
        task_ttl_s: float,
        hosts: Sequence[str] = LOOPBACK_HOSTS,
        origins: Collection[str] = (),
        max_body_bytes: int = 4 * 1024 * 1024,
        call_timeout_s: float = 60.0,
        listed: ListMode = "all",
        beat_s: float = BEAT_S,
        answer_within_s: float = ANSWER_WITHIN_S,
        stream_limits: StreamLimits = USUAL_LIMITS,
    ) -> None:
        self._callers = callers
        self._sessions = sessions
        self._offers = offers
        self._listed: ListMode = listed
        self._tools = McpTools(agent, allowed, call_timeout_s, offers.shown)
        self._asking = Asking(states)
        self._tasks = Tasks(tasks, self._tools, self._caller, task_ttl_s)
        self._inputs = PassedInputs(ServerStates(states))
        self._changes = InMemorySubscriptionBus()
        self._listeners = ListenHandler(self._changes)
        self._open = OpenCalls(beat_s, answer_within_s)
        self._ending = False
        server = _Server(
            "pml",
            version=version,
            title="PML: procedural memory for agents",
            instructions=INSTRUCTIONS,
            cache_hints=CACHE_HINTS,
            on_list_tools=self._list_tools,
            on_subscriptions_listen=self._listen,
            get_tool_input_schema=_no_header_parameters,
        )
        McpOffers(offers, self._caller).register(server)
        server.add_request_handler("tools/call", CallToolRequestParams, self._call_tool)
        server.add_request_handler("logging/setLevel", SetLevelRequestParams, self._set_log_level)
        self._tasks.add_to(server)
        security = _security_of(hosts, origins)
        self._manager = StreamableHTTPSessionManager(
            app=server,
            stateless=True,
            security_settings=security,
            max_request_body_size=max_body_bytes,
        )
        self.streams = SessionStreams(sessions, now, stream_limits)
        self.messages = ClientMessages(ClientRequests(), self._open, replicas)
        self._http = HttpSessions(
            self._manager.handle_request,
            callers,
            sessions,
            self.streams,
            self.messages,
            replicas,
            security,
            max_body_bytes,
        )

    @property
    def route(self) -> Route:
        """The route to mount."""
        return Route(PATH, endpoint=self)

    async def __call__(self, scope: HttpScope, receive: Receive, send: Send) -> None:
        """Serve one HTTP request."""
        await self._http(scope, receive, send)

    def end_calls(self) -> None:
        """Answer the pending tool calls: their outcome is unknown."""
        self._tools.end_calls()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Serve until the context exits; enters once. Exit it before the HTTP server stops, which
        waits for open streams: the exit ends them."""
        begun, over = asyncio.Event(), asyncio.Event()

        async def own_sessions() -> None:
            # The SDK's sessions must be left by the task that entered them; our exit may run in
            # another.
            async with self._manager.run():
                begun.set()
                await over.wait()

        owner = asyncio.create_task(own_sessions(), name="mcp-sessions")
        owner.add_done_callback(lambda _: begun.set())
        await begun.wait()
        try:
            yield
        finally:
            self.end_streams()
            over.set()
            await owner

    async def tools_changed(self) -> None:
        """Notify every client that listens on this replica."""
        self.streams.changed(TOOLS_CHANGED)
        await self._changes.publish(ToolsListChanged())

    async def on_session_ended(self, ended: SessionEnded) -> None:
        """End the streams of a session that its client ended at another replica."""
        self.streams.end_session(ended.session)

    async def offers_changed(self, before: Offers, now: Offers) -> None:
        """Notify every client that listens on this replica of other resources or prompts."""
        if (before.resources, before.templates) != (now.resources, now.templates):
            self.streams.changed(RESOURCES_CHANGED)
            await self._changes.publish(ResourcesListChanged())
        if before.prompts != now.prompts:
            self.streams.changed(PROMPTS_CHANGED)
            await self._changes.publish(PromptsListChanged())

    def end_streams(self) -> None:
        """End the clients' streams of changes; later ones are acknowledged and end at once."""
        self._ending = True
        self._open.end()
        self.streams.end()
        self._listeners.close()

    async def _listen(
        self, ctx: Context, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        if self._ending:
            asyncio.get_running_loop().call_soon(self._listeners.close)  # after it opens
        heard = params.notifications.model_copy(update={"resource_subscriptions": None})
        lists = params.model_copy(update={"notifications": heard})
        return await self._listeners(ctx, lists)

    def log(self, message: LogMessage, callers: Set[Caller | None]) -> None:
        """Tell clients that listen on this replica what a server logs of itself."""
        self.streams.log(message, callers)

    async def _set_log_level(self, ctx: Context, params: SetLevelRequestParams) -> EmptyResult:
        exchange = exchange_of(ctx)
        if exchange is not None:
            await self._sessions.set_log_level(exchange.session, params.level)
            self.streams.set_log_level(exchange.session.key, params.level)
            self._offers.want_logs(params.level)
        return EmptyResult()

    async def _list_tools(
        self, ctx: Context, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        caller = await self._caller(ctx)
        try:
            cursor = None if params is None else params.cursor
            return await self._tools.list_tools(caller, self._list_mode(ctx), cursor)
        except InvalidRequest as error:
            raise MCPError(INVALID_PARAMS, str(error)) from error
        except (QueryFailed, Retryable, Unavailable) as error:
            raise MCPError(INTERNAL_ERROR, f"tools cannot be listed now: {error}") from error

    async def _call_tool(self, ctx: Context, params: CallToolRequestParams) -> HandlerResult:
        headers: Mapping[str, str] = ctx.request.headers if ctx.request is not None else {}
        attributes = {vocabulary.MCP_METHOD: "tools/call", vocabulary.MCP_TOOL: params.name}
        with spanning(_tracer, "tools/call", attributes, kind=SpanKind.SERVER, sent=headers):
            return await self._answer_call(ctx, params)

    async def _answer_call(self, ctx: Context, params: CallToolRequestParams) -> HandlerResult:
        caller, arguments = await self._caller(ctx), params.arguments or {}

        inputs, own = self._inputs.of(ctx, caller, params), self._inputs.without(params)

        async def work(side: CallerSide) -> CallToolResult:
            asker = self._asking.asker_of(ctx, caller, own, side.client)
            side = self._tasks.side_of(ctx, replace(side, asker=asker, inputs=inputs))
            return await self._tools.call(caller, params.name, arguments, side)

        try:
            return await self._open.answer(ctx, work)
        except InputNeeded as needed:
            return self._asking.required(caller, params, needed)
        except TaskBegun as begun:
            return await self._tasks.created(ctx, caller, params.name, begun)
        except InputAsked as asked:
            return self._inputs.required(caller, params, asked)

    def _list_mode(self, ctx: Context) -> ListMode:
        if ctx.request is None:
            return self._listed
        parameter = ctx.request.query_params.get(LIST_PARAMETER)
        return list_mode(parameter, ctx.request.headers.get(LIST_HEADER), self._listed)

    async def _caller(self, ctx: Context) -> Caller:
        headers: Mapping[str, str] = ctx.request.headers if ctx.request is not None else {}
        try:
            return await self._callers.identify(headers)
        except Forbidden as error:
            raise MCPError(INVALID_REQUEST, str(error)) from error


def _security_of(hosts: Sequence[str], origins: Collection[str]) -> TransportSecuritySettings:
    if "*" in hosts:
        return TransportSecuritySettings(enable_dns_rebinding_protection=False)
    return TransportSecuritySettings(
        allowed_hosts=[*hosts, *(f"{host}:*" for host in hosts)],
        allowed_origins=[
            *origins,
            *(
                origin
                for host in hosts
                for scheme in ("http", "https")
                for origin in (f"{scheme}://{host}", f"{scheme}://{host}:*")
            ),
        ],
    )


def _no_header_parameters(name: str) -> None:
    """Return no schema: no listed tool takes parameters from HTTP headers."""
