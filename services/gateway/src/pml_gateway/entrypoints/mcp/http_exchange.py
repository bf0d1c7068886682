"""One HTTP request of a client with a session, as the handlers of MCP requests find it."""

from dataclasses import dataclass
from typing import Any, Final

from mcp.server import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pml_gateway.domain.api.client_session import ClientSession
from pml_gateway.entrypoints.mcp.client_requests import (
    ClientRequests,
    EnvelopeClient,
    PostStream,
    SessionClient,
)
from pml_gateway.ports import ClientSide

Context = ServerRequestContext[Any, Any]

EXCHANGE: Final = "pml.exchange"
"""Key of the exchange in the ASGI scope."""


@dataclass(frozen=True)
class HttpExchange:
    """A POST in a session and the stream of its response."""

    session: ClientSession
    stream: PostStream
    requests: ClientRequests


def exchange_of(ctx: Context) -> HttpExchange | None:
    """Return the exchange that a request belongs to; None without a session."""
    return None if ctx.request is None else ctx.request.scope.get(EXCHANGE)


def client_of(ctx: Context) -> ClientSide | None:
    """Return the client's side of a call; None where it has not said what it can do."""
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        declared = ctx.session.client_capabilities
        if declared is None:
            return None
        return EnvelopeClient(declared.model_dump(mode="json", by_alias=True, exclude_none=True))
    exchange = exchange_of(ctx)
    if exchange is None:
        return None
    return SessionClient(exchange.session, exchange.stream, exchange.requests)
