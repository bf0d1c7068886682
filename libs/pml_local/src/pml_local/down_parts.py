"""The parts of a running stack that are down."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from pml_local.events import Event, PartReady, PartRestarting, PartStopped
from pml_local.state import PartDown


class DownParts:
    """The parts that exited unexpectedly and are not ready again, collected from events."""

    def __init__(self) -> None:
        self._parts: dict[str, PartDown] = {}

    @property
    def parts(self) -> Mapping[str, PartDown]:
        """The parts that are down, by name."""
        return dict(self._parts)

    def observe(self, event: Event, now: datetime) -> bool:
        """Apply an event; returns whether it changed anything."""
        if isinstance(event, PartRestarting):
            known = self._parts.get(event.name)
            self._parts[event.name] = PartDown(
                since=known.since if known else now,
                reason=event.reason,
                failures=event.failures,
                next_try=now + timedelta(seconds=event.delay),
            )
            return True
        if isinstance(event, PartReady | PartStopped):
            return self._parts.pop(event.name, None) is not None
        return False
