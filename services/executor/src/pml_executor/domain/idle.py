"""What waits to be used again, each by one owner alone."""

from dataclasses import dataclass
from typing import Generic, TypeVar

Owner = TypeVar("Owner")
Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Waits(Generic[Owner, Thing]):
    """`since` is a time in seconds, of any clock."""

    owner: Owner
    thing: Thing
    since: float


class Idle(Generic[Owner, Thing]):
    """Things by owner, in the order in which they came."""

    def __init__(self) -> None:
        self._waiting: list[Waits[Owner, Thing]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, owner: Owner, thing: Thing, now: float) -> None:
        """It waits from `now` on."""
        self._waiting.append(Waits(owner, thing, now))

    def take(self, owner: Owner) -> Thing | None:
        """The owner's that came last, so that those there are too many of grow old."""
        for waits in reversed(self._waiting):
            if waits.owner == owner:
                self._waiting.remove(waits)
                return waits.thing
        return None

    def oldest(self, before: float) -> Thing | None:
        """Take the one that has waited longest, if since `before` or earlier."""
        if self._waiting and self._waiting[0].since <= before:
            return self._waiting.pop(0).thing
        return None
