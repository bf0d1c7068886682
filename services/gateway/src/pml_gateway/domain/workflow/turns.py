"""Fair queueing of executions for a bounded number of slots. Pure.

Slots go to the scope with the fewest executions in flight, within it to the principal with the
fewest, and among equals to the one that has waited longest since its last turn. A principal's own
executions begin in the order of their requests. If the queue is full, the newest execution of the
principal with the most waiting is evicted in favour of a principal with fewer.
"""

from collections import Counter
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple
from uuid import UUID

from pml_common.contracts.scope import Scope
from pml_gateway.domain.api.errors import Busy

MOST_RETRY_AFTER_S = 60


@dataclass(frozen=True)
class Bounds:
    """Bounds of one gateway: executions in flight, and waiting executions in all and per scope."""

    in_flight: int = 10
    waiting: int = 256
    waiting_per_scope: int = 64


class Party(NamedTuple):
    """A principal of a scope."""

    scope: Scope
    principal: str


class Turns:
    """The executions that are in flight, and those that wait, by their workflow ids.

    Invariant: if something waits, no slot is free.
    """

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._in_flight: dict[UUID, Party] = {}
        self._waiting: dict[Party, dict[UUID, None]] = {}
        self._since: dict[Party | Scope, int] = {}
        self._held: Counter[Party | Scope] = Counter()
        self._queued: Counter[Scope] = Counter()
        self._clock = 0

    @property
    def is_free(self) -> bool:
        """Whether an execution requested now begins at once."""
        return len(self._in_flight) < self._bounds.in_flight

    @property
    def waiting(self) -> int:
        """The number of waiting executions of all scopes."""
        return self._queued.total()

    def make_room(self, party: Party, hold_s: float) -> UUID | None:
        """Evict an execution so that one more of this principal may wait, and return its id; None
        if there is room. Raises Busy if the principal has its share; `hold_s` is for how long
        executions hold a slot."""
        crowded = self._crowded(party.scope)
        if crowded is None:
            return None
        longest = self._longest_in(crowded)
        fewer = len(self._waiting.get(party, ())) + 1 if crowded == party.scope else 0
        if longest is None or len(self._waiting[longest]) <= fewer:
            raise self.busy(party.scope, hold_s)
        newest = next(reversed(self._waiting[longest]))
        self._remove(longest, newest)
        return newest

    def busy(self, scope: Scope, hold_s: float) -> Busy:
        """Build the refusal of an execution of this scope."""
        waiting, bounds = self._queued[scope], self._bounds
        retry_after_s = self._retry_after_s(hold_s)
        return Busy(
            f"{waiting} executions of {scope} wait to begin ({bounds.waiting_per_scope} may), "
            f"{self.waiting} of all scopes ({bounds.waiting} may); this one was not accepted: "
            f"try again in {retry_after_s} s",
            retry_after_s,
        )

    def add(self, party: Party, execution: UUID) -> bool:
        """Add an execution for which there is room. True: it is in flight; False: it waits."""
        if self.is_free:
            self._begin(party, execution)
            return True
        for each in party, party.scope:
            self._since.setdefault(each, self._tick())
        self._waiting.setdefault(party, {})[execution] = None
        self._queued[party.scope] += 1
        return False

    def leave(self, party: Party, execution: UUID) -> None:
        """Remove an execution, in flight or waiting."""
        if self._in_flight.pop(execution, None) is None:
            self._remove(party, execution)
        else:
            self._let_go(party)

    def next(self) -> UUID | None:
        """Begin the next execution and return its id; None if no slot is free or nothing waits."""
        if not self._waiting or not self.is_free:
            return None
        party = min(self._waiting, key=self._rank)
        execution = next(iter(self._waiting[party]))
        self._since[party] = self._since[party.scope] = self._tick()
        self._remove(party, execution)
        self._begin(party, execution)
        return execution

    def _crowded(self, scope: Scope) -> Scope | None:
        """Return the scope to evict from before this one may have one more waiting."""
        queued, bounds = self._queued, self._bounds
        if self.is_free:
            return None
        if queued[scope] >= bounds.waiting_per_scope:
            return scope
        if self.waiting < bounds.waiting:
            return None
        fullest = max(queued, key=lambda each: queued[each], default=scope)
        return fullest if queued[fullest] > queued[scope] + 1 else scope

    def _longest_in(self, scope: Scope) -> Party | None:
        parties = [each for each in self._waiting if each.scope == scope]
        return max(parties, key=lambda each: len(self._waiting[each]), default=None)

    def _retry_after_s(self, hold_s: float) -> int:
        """Estimate the whole seconds until half of what waits has begun."""
        expected = self.waiting * hold_s / self._bounds.in_flight / 2
        return min(MOST_RETRY_AFTER_S, max(1, ceil(expected)))

    def _rank(self, party: Party) -> tuple[int, int, int, int]:
        scope, held, since = party.scope, self._held, self._since
        return held[scope], since[scope], held[party], since[party]

    def _begin(self, party: Party, execution: UUID) -> None:
        self._in_flight[execution] = party
        self._held.update((party, party.scope))

    def _let_go(self, party: Party) -> None:
        for each in party, party.scope:
            self._held[each] -= 1
            if self._held[each] == 0:
                del self._held[each]

    def _remove(self, party: Party, execution: UUID) -> None:
        mine = self._waiting[party]
        del mine[execution]
        self._queued[party.scope] -= 1
        if not mine:
            del self._waiting[party], self._since[party]
        if self._queued[party.scope] == 0:
            del self._queued[party.scope], self._since[party.scope]

    def _tick(self) -> int:
        self._clock += 1
        return self._clock
