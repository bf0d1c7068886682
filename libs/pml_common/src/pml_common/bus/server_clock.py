"""The server's time and outages.

Processes compare timestamps by the server's clock, since their own may differ. Between two readings
it is extrapolated with the monotonic clock, so a jump of the local clock has no effect.
"""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from nats.aio.client import Client

from pml_common.bus import names
from pml_common.bus.connection import server_errors
from pml_common.bus.errors import BusError
from pml_common.contracts.catalog import SERVICES
from pml_common.outages import Outage, OutageLog

log = logging.getLogger(__name__)

EVERY_S = 2.0
_WHILE_AWAY_S = 0.2
_PRECISE_S = 0.5
"""A reading that took longer does not replace a better one."""
_READ_WITHIN_S = 2.0
TOLERATED_S = 1.0
"""Larger differences between the local clock and the server's are reported."""

Monotonic = Callable[[], float]


class ServerClock:
    """Follows the server's clock; `read` requests its time and raises BusError."""

    def __init__(
        self,
        read: Callable[[], Awaitable[datetime]],
        monotonic: Monotonic = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._read = read
        self._monotonic = monotonic
        self._wall = wall
        self._offset: float | None = None
        self._answered = monotonic()
        self._outages = OutageLog()
        self._reported = False

    def now(self) -> datetime:
        """Return the server's time; the local time before the first reading."""
        if self._offset is None:
            return datetime.fromtimestamp(self._wall(), UTC)
        return datetime.fromtimestamp(self._monotonic() + self._offset, UTC)

    def outages(self) -> tuple[Outage, ...]:
        """Return the server's outages, as `port.Bus.outages` does."""
        return self._outages.as_of(self._monotonic())

    async def synchronize(self) -> bool:
        """Read the clock once; return whether the server answered."""
        began = self._monotonic()
        try:
            server = await self._read()
        except BusError as error:
            log.debug("the server's clock cannot be read: %s", error)
            if self._offset is not None:
                self._outages.begin(self._answered)
            return False
        ended = self._answered = self._monotonic()
        self._outages.end(ended)
        if self._offset is None or ended - began <= _PRECISE_S:
            self._offset = server.timestamp() - (began + ended) / 2
        self._report()
        return True

    async def keep_synchronized(self) -> None:
        """Read the clock every two seconds, more often during an outage."""
        while True:
            answered = await self.synchronize()
            await asyncio.sleep(EVERY_S if answered else _WHILE_AWAY_S)

    def _report(self) -> None:
        problem = clock_difference(self.now, self._wall)
        if problem is not None and not self._reported:
            log.warning("%s", problem)
        elif problem is None and self._reported:
            log.info("the local clock agrees with that of the NATS server again")
        self._reported = problem is not None


def clock_difference(now: Callable[[], datetime], wall: Callable[[], float]) -> str | None:
    """Describe how much the local clock differs from the server's; None within the tolerance."""
    seconds = wall() - now().timestamp()
    if abs(seconds) <= TOLERATED_S:
        return None
    which = "ahead of" if seconds > 0 else "behind"
    return (
        f"the local clock is {abs(seconds):.1f} s {which} that of the NATS server; deadlines "
        "follow the server's: check the time service of this machine"
    )


async def read_clock(client: Client, service: str) -> datetime:
    """Return the server's time from its description of the service's own stream. Raises
    BusError."""
    stream = names.stream_of("evt", service if service in SERVICES else SERVICES[0])
    with server_errors(client, "read the server's clock"):
        reply = await client.request(f"$JS.API.STREAM.INFO.{stream}", b"", timeout=_READ_WITHIN_S)
    try:
        return datetime.fromisoformat(json.loads(reply.data)["ts"])
    except (KeyError, ValueError) as error:
        raise BusError(f"the server did not send its time: {reply.data[:200]!r}") from error
