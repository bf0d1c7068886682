"""Log messages of servers, to the client whose call caused them."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import anyio
from mcp.server import ServerRequestContext
from mcp_types import (
    LOG_LEVEL_META_KEY,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from typing_extensions import override

from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.log_levels import LogLevel, is_level, reaches
from pml_gateway.entrypoints.mcp.http_exchange import exchange_of
from pml_gateway.ports import LogMessage, LogTaker

_LAST_WITHIN_S: Final = 2.0

Context = ServerRequestContext[Any, Any]
Send = Callable[[JsonObject], Awaitable[None]]

MOST_PENDING: Final = 200
"""Messages that wait to be sent; what is logged faster is counted, and left out."""


def level_of(ctx: Context) -> LogLevel | None:
    """Return the level that a request's client wants: of its session, or from 2026-07-28 on of the
    request."""
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        given = None if ctx.meta is None else ctx.meta.get(LOG_LEVEL_META_KEY)
        return given if is_level(given) else None
    exchange = exchange_of(ctx)
    return None if exchange is None else exchange.session.log_level


def logs_of(ctx: Context) -> "CallLogs | None":
    """Return what takes the messages for the client of a call; None where it wants none."""
    level = level_of(ctx)

    async def send(params: JsonObject) -> None:
        said = LoggingMessageNotificationParams.model_validate(params)
        told = LoggingMessageNotification(params=said)
        await ctx.session.send_notification(told, related_request_id=ctx.request_id)

    return None if level is None else CallLogs(level, send)


class CallLogs(LogTaker):
    """Sends messages one after the other, while the call is open."""

    def __init__(self, level: LogLevel, send: Send) -> None:
        self._level: LogLevel = level
        self._send = send
        self._pending = deque[JsonObject]()
        self._left_out = 0
        self._wanted = asyncio.Event()
        self._over = False

    @property
    @override
    def level(self) -> LogLevel:
        return self._level

    @override
    def take(self, message: LogMessage) -> None:
        if not reaches(message.level, self._level):
            return
        if len(self._pending) >= MOST_PENDING:
            self._left_out += 1
            return
        self._pending.append(message.params)
        self._wanted.set()

    @asynccontextmanager
    async def sending(self) -> AsyncGenerator[None]:
        """Send what is taken until the context exits, which waits a while for the rest."""
        sending = asyncio.create_task(self._run())
        try:
            yield
        finally:
            self._over = True
            self._wanted.set()
            await asyncio.wait({sending}, timeout=_LAST_WITHIN_S)
            sending.cancel()

    async def _run(self) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # nobody reads it
            while not self._over or self._pending:
                await self._wanted.wait()
                self._wanted.clear()
                while self._pending:
                    await self._send(self._pending.popleft())
                if self._left_out:
                    said = f"{self._left_out} messages came too fast, and are left out"
                    self._left_out = 0
                    await self._send({"level": "warning", "logger": "pml", "data": said})
