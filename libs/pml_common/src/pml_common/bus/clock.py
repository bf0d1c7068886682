"""Clocks for the in-memory bus: real, scaled, or manual."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Cancellable(Protocol):
    """A scheduled call."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """The current time and scheduled calls."""

    def now(self) -> datetime: ...

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Cancellable: ...


class ScaledClock:
    """The event loop's time, `scale` times as long: 0.01 makes a minute pass in 0.6 s."""

    def __init__(self, scale: float = 1.0) -> None:
        self._scale = scale

    def now(self) -> datetime:
        """Return the wall-clock time."""
        return datetime.now(UTC)

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Cancellable:
        """Schedule a call after `delay_s` of this clock."""
        return asyncio.get_running_loop().call_later(delay_s * self._scale, callback)


@dataclass
class _Alarm:
    due: datetime
    callback: Callable[[], None] | None

    def cancel(self) -> None:
        self.callback = None


class ManualClock:
    """A clock that only `advance` moves."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now = start
        self._alarms: list[_Alarm] = []

    def now(self) -> datetime:
        """Return the time that the clock was advanced to."""
        return self._now

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Cancellable:
        """Schedule a call for when `advance` passes `delay_s`."""
        alarm = _Alarm(self._now + timedelta(seconds=delay_s), callback)
        self._alarms.append(alarm)
        return alarm

    def advance(self, seconds: float) -> None:
        """Advance the clock and run the calls that are due, in order."""
        end = self._now + timedelta(seconds=seconds)
        while due := [alarm for alarm in self._alarms if alarm.due <= end]:
            alarm = min(due, key=lambda alarm: alarm.due)
            self._alarms.remove(alarm)
            self._now = max(self._now, alarm.due)
            if alarm.callback is not None:
                alarm.callback()
        self._now = end
