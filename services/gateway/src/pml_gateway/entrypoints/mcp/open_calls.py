"""Tool calls that are being answered: their progress, and their cancellation by the client.

From 2026-07-28 on a client cancels by closing the response's stream, and the SDK then cancels the
handler. Before, a lost connection is no cancellation: the call goes on, and the client cancels it
with a notification in a request of its own, which names the session and the call's request.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Any, Final

from mcp import MCPError
from mcp.server import ServerRequestContext
from mcp_types import CallToolResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import JsonValue

from pml_gateway.entrypoints.mcp.http_exchange import client_of, exchange_of
from pml_gateway.entrypoints.mcp.logs import logs_of
from pml_gateway.entrypoints.mcp.progress import Progress
from pml_gateway.ports import CallerSide

Context = ServerRequestContext[Any, Any]
Work = Callable[[CallerSide], Awaitable[CallToolResult]]

ANSWER_WITHIN_S: Final = 45.0
"""Common clients give a call up after 60 seconds."""

BEAT_S: Final = 5.0
"""Interval of progress notifications while nothing else is to be said."""

REQUEST_CANCELLED: Final = -32800

_Key = tuple[str, str | int]
"""Session and id of the request."""


class _OpenCall:
    """One call; `withdrawn` by its client, or `abandoned`: the answer would reach nobody."""

    def __init__(self) -> None:
        self.withdrawn = False
        self.abandoned = False
        self.task: asyncio.Task[CallToolResult] | None = None

    async def is_gone(self) -> bool:
        """Whether nobody waits for the answer."""
        return self.abandoned or self.withdrawn


class OpenCalls:
    """The calls that this process answers."""

    def __init__(self, beat_s: float = BEAT_S, answer_within_s: float = ANSWER_WITHIN_S) -> None:
        self._beat_s = beat_s
        self._answer_within_s = answer_within_s
        self._calls: dict[_Key, _OpenCall] = {}
        self._tasks: set[asyncio.Task[CallToolResult]] = set()
        self._ending = False

    def end(self) -> None:
        """From now on a connection that is lost cancels nothing: the gateway stops."""
        self._ending = True

    async def answer(self, ctx: Context, work: Work) -> CallToolResult:
        """Do the work of a call for the client that made it."""
        wants_progress = ctx.meta is not None and ctx.meta.get("progress_token") is not None
        is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        call, progress = (
            _OpenCall(),
            Progress(ctx.session.report_progress) if wants_progress else None,
        )
        logs = logs_of(ctx)
        side = CallerSide(
            answer_by=None if progress else _now() + self._answer_within_s,
            report=progress.report if progress else None,
            relay=progress.relay if progress else None,
            logs=logs,
            is_gone=call.is_gone,
            withdrawn=lambda: not self._ending if is_modern else call.withdrawn,
            client=client_of(ctx),
        )
        beating = progress and asyncio.create_task(progress.run(self._beat_s))
        try:
            async with logs.sending() if logs else nullcontext():
                if is_modern:
                    return await work(side)
                return await self._detached(ctx, call, work(side))
        finally:
            if beating is not None and progress is not None:
                beating.cancel()
                await progress.flush()

    def has_of(self, session_key: str) -> bool:
        """Whether a call of this session is under way here."""
        return any(key == session_key for key, _ in self._calls)

    def cancel(self, session_key: str, params: JsonValue) -> bool:
        """Cancel the call that the parameters of a `notifications/cancelled` of this session name;
        return whether it is here."""
        named = params.get("requestId") if isinstance(params, dict) else None
        call = self._calls.get((session_key, named)) if isinstance(named, str | int) else None
        if call is None or call.task is None:
            return False
        call.withdrawn = True
        call.task.cancel()
        return True

    async def _detached(
        self, ctx: Context, call: _OpenCall, work: Awaitable[CallToolResult]
    ) -> CallToolResult:
        """Do the work in a task of its own, which goes on where the connection is lost."""
        exchange = exchange_of(ctx)
        call.task = task = asyncio.ensure_future(_awaited(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if exchange is not None and ctx.request_id is not None:
            key = exchange.session.key, ctx.request_id
            self._calls[key] = call
            task.add_done_callback(lambda _: self._calls.pop(key, None))
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            call.abandoned = True
            raise
        if task.cancelled():
            raise MCPError(REQUEST_CANCELLED, "the client cancelled the call")
        return task.result()


async def _awaited(work: Awaitable[CallToolResult]) -> CallToolResult:
    return await work


def _now() -> float:
    return asyncio.get_running_loop().time()
