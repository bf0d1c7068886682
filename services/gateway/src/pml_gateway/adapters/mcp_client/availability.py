"""Availability of one upstream MCP server, and the calls that wait for it."""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pml_gateway.adapters.mcp_client.connection import Limits
from pml_gateway.adapters.mcp_client.errors import NotConnected
from pml_gateway.ports import ServerState

log = logging.getLogger(__name__)

_LOOK_EVERY_S: Final = 2.0


@dataclass(frozen=True)
class Demand:
    """A call's demand for the server: when it arose, on the monotonic clock, and the number of
    failed attempts to connect until then."""

    at: float
    failed_attempts: int


class Availability:
    """State of the connection to one server."""

    def __init__(self, name: str, limits: Limits) -> None:
        self.state: ServerState = "connecting"
        self.error: str | None = None
        self.since = datetime.now(UTC)
        self._name = name
        self._limits = limits
        self._changed = asyncio.Event()
        self._wanted = asyncio.Event()
        self._away_since = time.monotonic()
        self._failed_attempts = 0
        self._closed = False
        self.parked = False
        self._asked = asyncio.Event()

    async def settled(self) -> None:
        """Wait until no attempt to connect is under way."""
        while self.state == "connecting":
            await self._changed.wait()

    def set_ready(self) -> None:
        """Record that the server can be called."""
        self.parked = False
        self._change("ready", None)

    def set_lost(self, reason: str | None) -> None:
        """Record that the connection ended and is made anew."""
        self._away_since = time.monotonic()
        self._change("connecting", reason)

    def set_ended(self, reason: str, *, was_ready: bool, again_soon: bool) -> None:
        """Record that an attempt to connect failed, or that a connection is closed completely."""
        self._wanted.clear()
        self._failed_attempts += not was_ready
        self._change("connecting" if again_soon else "failed", reason)

    def close(self, reason: str) -> None:
        """Stop, and end all waiting."""
        self._closed = True
        self._set("failed", reason)

    def retry(self) -> None:
        """Have the server tried at once."""
        self._wanted.set()
        self._asked.set()

    def demand(self) -> Demand:
        """Return the demand of a call that needs the server from now on."""
        return Demand(time.monotonic(), self._failed_attempts)

    async def wait_for_change(self, demand: Demand) -> None:
        """Have the server tried at once, and wait for a change of state. Raises NotConnected if the
        server was absent for long and an attempt has failed since the demand."""
        left = self._patience_s(demand)
        if self._closed or left <= 0:
            raise NotConnected(self.error)
        self._wanted.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(None if math.isinf(left) else left):
                await self._changed.wait()

    def park(self, reason: str) -> None:
        """Record that the server is not tried again until somebody does something about it."""
        self.parked = True
        self._asked.clear()
        self._change("failed", reason)

    async def unparked(self, changed: Callable[[], Awaitable[bool]]) -> None:
        """Wait until it is to be tried again: when asked, or once what it waits for has `changed`,
        as is looked every two seconds."""
        while not self._asked.is_set() and not await changed():
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_EVERY_S):
                    await self._asked.wait()
        self._wanted.clear()
        self._change("connecting", None)

    async def pause(self, failures: int) -> None:
        """Wait before the next attempt to connect; shortly if a call needs the server."""
        delay = self._limits.retry_delay_s(failures)
        least = min(delay, self._limits.wanted_delay_s)
        if self._away_s < self._limits.absence_s:
            least = min(least, self._limits.retry_delay_s(1))
        await asyncio.sleep(least)
        if delay > least:
            with suppress(TimeoutError):
                async with asyncio.timeout(delay - least):
                    await self._wanted.wait()

    @property
    def _away_s(self) -> float:
        return time.monotonic() - self._away_since

    def _patience_s(self, demand: Demand) -> float:
        if self.state != "failed":
            return math.inf
        if self.parked:
            return 0.0
        coming_back = self._limits.absence_s - self._away_s
        if self._failed_attempts > demand.failed_attempts:
            return coming_back
        return max(coming_back, demand.at + self._limits.attempt_s - time.monotonic())

    def _change(self, state: ServerState, error: str | None) -> None:
        if self._closed:
            return
        if (self.state, self.error) != (state, error):
            level = logging.WARNING if state == "failed" else logging.INFO
            log.log(level, "MCP server %s: %s%s", self._name, state, f": {error}" if error else "")
        self._set(state, error)

    def _set(self, state: ServerState, error: str | None) -> None:
        if self.state != state:
            self.since = datetime.now(UTC)
        self.state, self.error = state, error
        self._changed.set()
        self._changed = asyncio.Event()
