"""Admission of calls to one MCP server: a bounded queue, and a circuit breaker."""

import asyncio
import logging
import math
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

from pml_common.contracts.gateway import ToolOutcome
from pml_gateway.adapters.mcp_client.connection import Limits
from pml_gateway.adapters.mcp_client.errors import describe, is_answer
from pml_gateway.domain.servers.circuit import (
    CLOSED,
    Circuit,
    CircuitState,
    admitting,
    after_failure,
    refusal,
)

log = logging.getLogger(__name__)


class TurnedAway(Exception):
    """A call is not made now. The message says why."""


class CallGate:
    """At most `concurrency` calls are under way; `queue` more wait for their turn."""

    def __init__(self, name: str, limits: Limits) -> None:
        self._name = name
        self._limits = limits
        self._slots = asyncio.Semaphore(limits.concurrency)
        self._circuit = CLOSED
        self._failed_at = -math.inf
        self.under_way = 0
        self.queued = 0

    @property
    def state(self) -> CircuitState:
        """The state of the circuit."""
        return self._circuit.state_at(time.monotonic())

    @property
    def fault(self) -> str | None:
        """Why calls are refused; None while they are made."""
        if self.state == "closed":
            return None
        return refusal(self._circuit, self._name, time.monotonic())

    @asynccontextmanager
    async def entered(self) -> AsyncGenerator[None]:
        """Wait for the call's turn, and count it as under way until the context exits. Raises
        TurnedAway: at once, or after the wait."""
        self._admitting()  # refuses now what would only wait to be refused
        if self._slots.locked() and self.queued >= self._limits.queue:
            raise TurnedAway(
                f"MCP server {self._name!r} is busy: {self.under_way} calls are under way and "
                f"{self.queued} wait for their turn"
            )
        self.queued += 1
        try:
            await self._slots.acquire()
        finally:
            self.queued -= 1
        try:
            circuit = self._circuit = self._admitting()
            self.under_way += 1
            try:
                yield
            finally:
                self.under_way -= 1
                if circuit.probing and self._circuit is circuit:  # the probe told nothing
                    self._circuit = replace(circuit, probing=False)
        finally:
            self._slots.release()

    def answered(self) -> None:
        """Record that the server answered a call."""
        if self._circuit.opened:
            log.warning("MCP server %s: answers again, its circuit is closed", self._name)
        self._circuit = CLOSED

    def failed(self, error: Exception, began: float, fault: str) -> None:
        """Record that a call, sent at `began` on the monotonic clock, raised. Calls that end
        together with their connection, whose `fault` ended it, count as one."""
        if is_answer(error):
            self.answered()
        elif began > self._failed_at:
            self.unanswered(fault or describe(error))

    def unanswered(self, why: str) -> None:
        """Record that the server left a call unanswered."""
        before, now = self._circuit, time.monotonic()
        self._failed_at = now
        self._circuit = after_failure(before, self._limits.circuit, now, why)
        if self._circuit.state == "open" and before.state != "open":
            log.warning("%s", refusal(self._circuit, self._name, now))

    def _admitting(self) -> Circuit:
        now = time.monotonic()
        circuit = admitting(self._circuit, now)
        if circuit is None:
            raise TurnedAway(refusal(self._circuit, self._name, now))
        return circuit


async def wait_within(
    request: asyncio.Task[ToolOutcome],
    sent: asyncio.Event,
    timeout_s: float,
    limit_s: float | None,
) -> float:
    """Wait for a call's outcome for `timeout_s`, and for `limit_s` once it is sent; return the one
    that counted."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + timeout_s
    if limit_s is not None:
        sending = asyncio.create_task(sent.wait())
        either = {request, sending}
        await asyncio.wait(either, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        sending.cancel()
        if sent.is_set() and clock() + limit_s < deadline:
            await asyncio.wait({request}, timeout=limit_s)
            return limit_s
    await asyncio.wait({request}, timeout=max(0.0, deadline - clock()))
    return timeout_s
