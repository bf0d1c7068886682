"""Rules of the sandbox pool: its capacity, its idle processes, and who may share a process."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.scope import Scope

Owner = TypeVar("Owner")
Item = TypeVar("Item")


@dataclass(frozen=True)
class PoolCapacity:
    """Number of processes to start, and to end to make room.

    `spare` processes wait for any scope, `idle` ones for their own scope, `busy` ones have a run or
    are being renewed after one, `ending` ones are being ended. There are at most `max_processes`;
    `spares` should be spare, and each of `waiting` leases needs a process.
    """

    max_processes: int
    spares: int
    waiting: int = 0
    spare: int = 0
    starting: int = 0
    idle: int = 0
    busy: int = 0
    ending: int = 0

    @property
    def to_start(self) -> int:
        """Processes to start: those needed, as far as there is room."""
        return max(0, min(self._short, self.max_processes - self._taken))

    @property
    def short_for_waiters(self) -> int:
        """Places that waiting leases need and only the end of an idle process can free."""
        return max(0, self.waiting - self.spare - self.starting - self.to_start - self.ending)

    @property
    def short_for_spares(self) -> int:
        """Places that spares need and only the end of an idle process can free."""
        return max(0, self._short - self.to_start - self.ending) - self.short_for_waiters

    @property
    def _short(self) -> int:
        return self.spares + self.waiting - self.spare - self.starting

    @property
    def _taken(self) -> int:
        return self.spare + self.starting + self.idle + self.busy + self.ending


@dataclass(frozen=True)
class IdleItem(Generic[Owner, Item]):
    """An item that waits for its owner; `since` is a time in seconds, of any clock."""

    owner: Owner
    item: Item
    since: float


class IdleItems(Generic[Owner, Item]):
    """Items that wait to be used again, each by its owner alone, in the order of their arrival."""

    def __init__(self) -> None:
        self._items: list[IdleItem[Owner, Item]] = []

    def __len__(self) -> int:
        return len(self._items)

    def put(self, owner: Owner, item: Item, now: float) -> None:
        """Add an item that is idle since `now`."""
        self._items.append(IdleItem(owner, item, now))

    def take(self, owner: Owner) -> Item | None:
        """Remove and return the owner's most recent item, so that superfluous ones grow old."""
        for idle in reversed(self._items):
            if idle.owner == owner:
                self._items.remove(idle)
                return idle.item
        return None

    def oldest(self, before: float) -> Item | None:
        """Remove and return the item that is idle longest, if since `before` or earlier."""
        if self._items and self._items[0].since <= before:
            return self._items.pop(0).item
        return None


def process_owner(command: RunWorkflow) -> Scope | None:
    """Return the scope whose other runs may use the same process before or after this one; None if
    no other run may.

    A run that a person approved may do more than the scope's other programs: one of those that
    broke out unnoticed must find nothing of it.
    """
    return command.scope if command.grant.approved_by is None else None
