"""Attempts to connect to one upstream MCP server."""

import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pml_gateway.adapters.mcp_client.connection import Admit, Limits, UpstreamConnection
from pml_gateway.adapters.mcp_client.errors import describe
from pml_gateway.adapters.mcp_client.oauth import login_auth
from pml_gateway.adapters.mcp_client.server_calls import OnLog
from pml_gateway.domain.servers.server_config import HttpServer, ServerConfig
from pml_gateway.ports import Login, Logins, Transport

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Listeners:
    """Hear of a connection, in this order: that it is ready, with its transport; that it lists
    other tools; other resources and prompts; that it can be used no longer."""

    ready: Callable[[UpstreamConnection, Transport], None]
    tools: Callable[[UpstreamConnection], None]
    offers: Callable[[UpstreamConnection], None]
    lost: Callable[[UpstreamConnection], None]


@dataclass(frozen=True)
class End:
    """The end of an attempt: the seconds for which the connection could be used, and why it ended.
    The server `needs_login` where it answered 401 instead of connecting; it `refused` Streamable
    HTTP where it may have the transport of before."""

    lasted_s: float
    reason: str
    needs_login: bool
    refused: bool

    @property
    def was_ready(self) -> bool:
        """Whether the connection could be used."""
        return self.lasted_s > 0


class Attempts:
    """Makes connections, each with the login that there is by then."""

    def __init__(
        self,
        name: str,
        server: ServerConfig,
        environment: Mapping[str, str],
        limits: Limits,
        admit: Admit,
        logins: Logins,
        on_log: OnLog,
    ) -> None:
        self._name = name
        self._server = server
        self._environment = environment
        self._limits = limits
        self._admit = admit
        self._logins = logins
        self._on_log = on_log
        self._login: Login | None = None

    async def has_other_login(self) -> bool:
        """Whether there was a login since the last attempt."""
        return await self._logins.find(self._name) != self._login

    async def connect(self, listeners: Listeners) -> End:
        """Run one connection from start to end, over HTTP with SSE where the server does without
        Streamable HTTP."""
        end = await self._run(self._server, listeners)
        if not end.refused or end.was_ready or not isinstance(self._server, HttpServer):
            return end
        older = await self._run(self._server.model_copy(update={"type": "sse"}), listeners)
        if older.was_ready:
            return older
        reason = f"{end.reason}; over HTTP with SSE: {older.reason}"
        return End(0.0, reason, older.needs_login, refused=True)

    async def _run(self, server: ServerConfig, listeners: Listeners) -> End:
        self._login = await self._logins.find(self._name)
        auth = await login_auth(self._name, server, self._logins)
        connection = UpstreamConnection(
            self._name,
            server,
            self._environment,
            self._limits,
            self._admit,
            auth,
            self._on_log,
        )
        transport, ready_at = connection.transport, math.inf

        def on_ready() -> None:
            nonlocal ready_at
            ready_at = time.monotonic()
            listeners.ready(connection, server.type)

        try:
            await connection.run(
                on_ready=on_ready,
                on_tools=lambda: listeners.tools(connection),
                on_offers=lambda: listeners.offers(connection),
                on_end=lambda: listeners.lost(connection),
            )
            reason = connection.end_reason or transport.fault or "it closed the connection"
        except Exception as error:
            log.debug("%s: connection ended", self._name, exc_info=True)
            reason = transport.fault or describe(error)
        output = transport.last_output
        full = f"{reason} ({output})" if output and output not in reason else reason
        lasted_s = max(0.0, time.monotonic() - ready_at)
        wanted = transport.needs_login and not lasted_s
        return End(lasted_s, full, wanted, refused=transport.refused is not None)
