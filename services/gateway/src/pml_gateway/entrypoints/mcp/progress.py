"""Progress notifications of one call."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import anyio

from pml_gateway.domain.workflow.progress import next_value, progress_value
from pml_gateway.ports import ToolProgress

_AT_ONCE: Final = 4
_EVERY_S: Final = 0.25
"""A tool's progress is passed on four times at once, and four times a second from then on."""

Send = Callable[[float, float | None, str | None], Awaitable[None]]


class Progress:
    """Notifications, each with a greater value than the one before."""

    def __init__(
        self, send: Send, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._send_one = send
        self._sleep = sleep
        self._done, self._beats = 0, 0
        self._total: float | None = None
        self._calls = 0
        self._message: str | None = "accepted"
        self._said = -1.0
        self._pending: ToolProgress | None = None
        self._wanted = asyncio.Event()

    async def report(self, done: int, total: int, message: str) -> None:
        """Send that so many calls of a program are reached."""
        if done > self._done:
            self._done, self._beats = done, 0
        self._total, self._calls, self._message = total, total, message
        await self._beat()

    def relay(self, progress: ToolProgress) -> None:
        """Have a tool's progress sent: the latest, where there is much."""
        self._pending = progress
        self._wanted.set()

    async def run(self, every_s: float) -> None:
        """Send what tools report, and else that the call is still under way, until this is
        cancelled."""
        left = _AT_ONCE
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(every_s):
                    await self._wanted.wait()
            if self._pending is None:
                left = _AT_ONCE
                await self._beat()
                continue
            if not left:
                await asyncio.sleep(_EVERY_S)
            left = max(0, left - 1)
            await self.flush()

    async def flush(self) -> None:
        """Send what a tool reported last, if it is not sent yet."""
        told, self._pending = self._pending, None
        self._wanted.clear()
        if told is None:
            return
        if self._calls > 1:  # a tool's own numbers say nothing of the program
            self._message = _sentence(told)
            await self._beat()
            return
        self._total, self._message = told.total, told.message or self._message
        await self._send(next_value(self._said, told.progress))

    async def _beat(self) -> None:
        if (value := progress_value(self._done, self._beats)) <= self._said:
            self._beats += 1
            value = progress_value(self._done, self._beats)
        await self._send(next_value(self._said, value))

    async def _send(self, value: float) -> None:
        self._said = value
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # nobody reads it
            await self._send_one(value, self._total, self._message)


def _sentence(told: ToolProgress) -> str:
    of = "" if told.total is None else f" of {told.total:g}"
    said = f": {told.message}" if told.message else ""
    return f"{told.tool_id} {told.progress:g}{of}{said}"
