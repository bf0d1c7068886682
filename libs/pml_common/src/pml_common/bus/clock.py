"""Clocks for the in-memory bus: real, scaled, or manual."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from typing_extensions import override


class Cancellable(Protocol):
    """A scheduled call."""

    def cancel(self) -> None:
        """Drop the call."""
        ...


class Clock(Protocol):
    """The current time and scheduled calls."""

    def now(self) -> datetime:
        """Return the current time."""
        ...

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Cancellable:
        """Schedule a call after `delay_s` of this clock."""
        ...


class ScaledClock(Clock):
    """The event loop's time, `scale` times as long: 0.01 makes a minute pass in 0.6 s."""

    def __init__(self, scale: float = 1.0) -> None:
        self._scale = scale

    @override
    def now(self) -> datetime:
        return datetime.now(UTC)

    @override
    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Cancellable:
        return asyncio.get_running_loop().call_later(delay_s * self._scale, callback)


@dataclass
class _Timer(Cancellable):
    due: datetime
    callback: Callable[[], None] | None

    @override
    def cancel(self) -> None:
        self.callback = None


class ManualClock(Clock):
    """A clock that only `advance` moves."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start
        self._timers: list[_Timer] = []

    @override
    def now(self) -> datetime:
        return self._now

    @override
    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Cancellable:
        timer = _Timer(self._now + timedelta(seconds=delay_s), callback)
        self._timers.append(timer)
        return timer

    def advance(self, seconds: float) -> None:
        """Advance the clock and run the calls that are due, in order."""
        end = self._now + timedelta(seconds=seconds)
        while due := [timer for timer in self._timers if timer.due <= end]:
            timer = min(due, key=lambda timer: timer.due)
            self._timers.remove(timer)
            self._now = max(self._now, timer.due)
            if timer.callback is not None:
                timer.callback()
        self._now = end
