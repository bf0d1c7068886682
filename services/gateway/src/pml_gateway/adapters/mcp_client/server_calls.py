"""Requests under way on one connection to a server, and what that server says meanwhile."""

from collections.abc import Callable, Generator, Set
from contextlib import contextmanager, suppress
from typing import cast

from mcp import Client, MCPError
from mcp.client import ClientRequestContext
from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequest,
    ElicitRequestParams,
    ElicitResult,
    EmptyResult,
    ErrorData,
    InputResponse,
    LoggingMessageNotificationParams,
    SetLevelRequest,
    SetLevelRequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pml_gateway.adapters.mcp_client.asked_client import AskedClient
from pml_gateway.domain.api.log_levels import LogLevel, log_params, reaches
from pml_gateway.ports import Caller, CallerSide, LogMessage

OnLog = Callable[[LogMessage, Set[Caller | None]], None]
"""Gets a server's message that belongs to no call, and whose requests its connection has had."""

_SET_WITHIN_S = 5.0


def ignore_log(message: LogMessage, callers: Set[Caller | None]) -> None:
    """Ignore a message."""


class ServerCalls:
    """Requests and messages of a server name no call: so they go to a caller only where they can be
    no other's."""

    def __init__(self, server: str, answer_s: float, on_log: OnLog) -> None:
        self._server = server
        self._answer_s = answer_s
        self._on_log = on_log
        self._sides: list[CallerSide | None] = []
        self._callers: set[Caller | None] = set()
        self._level: LogLevel | None = None

    @property
    def count(self) -> int:
        """Number of requests under way."""
        return len(self._sides)

    @contextmanager
    def entered(self, side: CallerSide | None, caller: Caller | None) -> Generator[None]:
        """Count a caller's request as under way until the context exits."""
        self._sides.append(side)
        self._callers.add(None if caller is None else Caller(caller.scope, caller.principal))
        try:
            yield
        finally:
            self._sides.remove(side)

    async def want(self, level: LogLevel, client: Client) -> None:
        """Have a server with a handshake log what someone wants, and never less again."""
        logs = client.server_capabilities.logging is not None
        if not logs or client.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return
        if self._level is not None and reaches(level, self._level):
            return
        self._level = level
        request = SetLevelRequest(params=SetLevelRequestParams(level=level))
        with suppress(MCPError):  # it logs what it likes then
            await client.session.send_request(request, EmptyResult, _SET_WITHIN_S)

    async def on_log(self, params: LoggingMessageNotificationParams) -> None:
        """Hand a message to the call that is alone under way; without one, to who listens. Where
        several callers use the connection it could be of any of them, even later: then to nobody.
        """
        if len(self._callers) > 1:
            return
        said = log_params(self._server, params.level, params.logger, params.data)
        message = LogMessage(params.level, said)
        if self.count != 1:
            self._on_log(message, self._callers)
            return
        (side,) = self._sides
        if side is not None and side.logs is not None:
            side.logs.take(message)

    async def sample(
        self, context: ClientRequestContext, params: CreateMessageRequestParams
    ) -> CreateMessageResult | CreateMessageResultWithTools | ErrorData:
        """Answer a request for a message of a model."""
        answer = await self._ask(CreateMessageRequest(params=params))
        return cast("CreateMessageResult | CreateMessageResultWithTools | ErrorData", answer)

    async def elicit(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult | ErrorData:
        """Answer a request for a person's input."""
        return cast("ElicitResult | ErrorData", await self._ask(ElicitRequest(params=params)))

    async def _ask(
        self, request: CreateMessageRequest | ElicitRequest
    ) -> InputResponse | ErrorData:
        """Hand a request to the client whose call is alone under way."""
        side = self._sides[0] if len(self._sides) == 1 else None
        try:
            return await AskedClient(side, self._answer_s).answer(request)
        except MCPError as error:
            return ErrorData(code=error.code, message=error.message)
