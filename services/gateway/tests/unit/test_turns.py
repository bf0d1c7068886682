"""Fair queueing of executions between principals, within bounds."""

from collections import Counter
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pml_common.contracts.scope import Scope
from pml_gateway.domain.api.errors import Busy
from pml_gateway.domain.workflow.turns import Bounds, Party, Turns

HERE, THERE = Scope(org="acme", project="web"), Scope(org="acme", project="ops")
ANA, BO, CY, EVE = (
    *(Party(HERE, name) for name in ("ana", "bo", "cy")),
    Party(THERE, "eve"),
)
HOLD_S = 1.0


class Stage:
    """Turns, with executions numbered in the order of their requests."""

    def __init__(self, bounds: Bounds) -> None:
        self.turns = Turns(bounds)
        self.owner: dict[int, Party] = {}
        self.in_flight: list[int] = []
        self.waiting: list[int] = []
        self.refused: list[int] = []

    def ask(self, party: Party, times: int = 1) -> None:
        """Request executions, and record the refused ones."""
        for _ in range(times):
            number = len(self.owner) + 1
            self.owner[number] = party
            try:
                removed = self.turns.make_room(party, HOLD_S)
            except Busy:
                self.refused.append(number)
                continue
            if removed is not None:
                self.waiting.remove(removed.int)
                self.refused.append(removed.int)
            begins = self.turns.add(party, UUID(int=number))
            (self.in_flight if begins else self.waiting).append(number)

    def leave(self, number: int) -> list[int]:
        """End or give up an execution; return those that begin then."""
        (self.in_flight if number in self.in_flight else self.waiting).remove(number)
        self.turns.leave(self.owner[number], UUID(int=number))
        begun: list[int] = []
        while (following := self.turns.next()) is not None:
            begun.append(following.int)
            self.waiting.remove(following.int)
            self.in_flight.append(following.int)
        return begun

    def order(self) -> list[Party]:
        """Return the principals whose executions begin, as those in flight end in FIFO order."""
        begun: list[Party] = []
        while self.in_flight:
            begun += [self.owner[number] for number in self.leave(self.in_flight[0])]
        return begun


def test_what_finds_a_free_slot_begins_at_once() -> None:
    stage = Stage(Bounds(in_flight=2, waiting=0, waiting_per_scope=0))
    stage.ask(ANA, times=2)
    assert (stage.in_flight, stage.refused) == ([1, 2], [])
    assert stage.turns.next() is None


def test_a_principal_is_not_delayed_behind_the_backlog_of_another() -> None:
    stage = Stage(Bounds(in_flight=2))
    stage.ask(ANA, times=20)
    stage.ask(BO)
    assert stage.order()[0] == BO


def test_principals_take_turns() -> None:
    stage = Stage(Bounds(in_flight=1))
    stage.ask(EVE)
    for party in (ANA, BO, CY):
        stage.ask(party, times=3)
    assert stage.order() == [ANA, BO, CY] * 3


def test_a_principal_that_asks_one_by_one_keeps_its_slot_beside_long_runs_of_another() -> None:
    stage = Stage(Bounds(in_flight=3))
    stage.ask(ANA, times=9)
    stage.ask(BO)
    (mine,) = stage.leave(1)
    assert stage.owner[mine] == BO
    stage.ask(BO)
    (mine,) = stage.leave(mine)
    assert stage.owner[mine] == BO


def test_scopes_share_slots_whatever_their_number_of_principals() -> None:
    stage = Stage(Bounds(in_flight=1))
    stage.ask(ANA)
    for party in (ANA, BO, CY):
        stage.ask(party, times=2)
    stage.ask(EVE, times=2)
    order = stage.order()
    assert [party.scope for party in order[:4]] == [HERE, THERE, HERE, THERE]


def test_exactly_the_surplus_is_refused_and_told_what_waits_and_when_to_try_again() -> None:
    stage = Stage(Bounds(in_flight=2, waiting=9, waiting_per_scope=3))
    stage.ask(ANA, times=8)
    assert stage.refused == [6, 7, 8]
    assert stage.in_flight == [1, 2]
    assert stage.waiting == [3, 4, 5]
    with pytest.raises(Busy, match=r"3 executions of acme.web wait.*3 may.*again in 5 s") as said:
        stage.turns.make_room(ANA, hold_s=6.0)
    assert said.value.retry_after_s == 5


def test_the_advice_to_try_again_is_bounded() -> None:
    turns = Turns(Bounds(in_flight=1))
    turns.add(ANA, UUID(int=1))
    turns.add(ANA, UUID(int=2))
    assert turns.busy(HERE, hold_s=0.0).retry_after_s == 1
    assert turns.busy(HERE, hold_s=3600.0).retry_after_s == 60


def test_who_has_fewer_waiting_takes_the_place_of_the_newest_of_who_has_most() -> None:
    stage = Stage(Bounds(in_flight=1, waiting=9, waiting_per_scope=4))
    stage.ask(ANA, times=5)
    stage.ask(BO, times=3)
    assert stage.refused == [5, 4, 8]
    assert stage.waiting == [2, 3, 6, 7]


def test_a_scope_takes_a_place_from_the_scope_that_has_most() -> None:
    stage = Stage(Bounds(in_flight=1, waiting=4, waiting_per_scope=4))
    stage.ask(ANA, times=4)
    stage.ask(BO, times=1)
    stage.ask(EVE, times=3)
    assert stage.refused == [4, 3, 8]
    assert [stage.owner[number] for number in stage.waiting] == [ANA, BO, EVE, EVE]


def test_nothing_waits_where_nothing_may() -> None:
    stage = Stage(Bounds(in_flight=1, waiting=0, waiting_per_scope=4))
    stage.ask(ANA, times=2)
    stage.ask(EVE)
    assert stage.refused == [2, 3]


def test_what_is_given_up_while_it_waits_leaves_its_place() -> None:
    stage = Stage(Bounds(in_flight=1, waiting=1, waiting_per_scope=1))
    stage.ask(ANA, times=2)
    assert stage.leave(2) == []
    stage.ask(BO)
    assert stage.leave(1) == [3]


@given(
    st.lists(st.integers(min_value=1, max_value=12), min_size=2, max_size=6),
    st.integers(min_value=1, max_value=4),
)
def test_slots_are_shared_evenly_among_those_who_wait(backlogs: list[int], slots: int) -> None:
    """When one principal has begun n executions, none that waits has begun fewer than n - slots."""
    stage = Stage(Bounds(in_flight=slots))
    stage.ask(EVE, times=slots)
    parties = [Party(HERE, str(number)) for number in range(len(backlogs))]
    for party, backlog in zip(parties, backlogs, strict=True):
        stage.ask(party, times=min(backlog, 64 // len(backlogs)))
    left, begun = Counter(stage.owner[number] for number in stage.waiting), Counter[Party]()
    for party in stage.order():
        begun[party] += 1
        left[party] -= 1
        waiting = [begun[each] for each in parties if left[each] > 0]
        assert not waiting or min(waiting) >= begun[party] - slots


BOUNDS = Bounds(in_flight=3, waiting=7, waiting_per_scope=5)


class Life(RuleBasedStateMachine):
    """Requests, ends and withdrawals of principals in two scopes, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.stage = Stage(BOUNDS)
        self.passed_over: dict[Party, Counter[Party]] = {}

    @rule(party=st.sampled_from([ANA, BO, CY, EVE]), times=st.integers(1, 4))
    def ask(self, party: Party, times: int) -> None:
        self.stage.ask(party, times)

    @precondition(lambda self: self.stage.in_flight)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        self._leave(data.draw(st.sampled_from(self.stage.in_flight)))

    @precondition(lambda self: self.stage.waiting)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        self._leave(data.draw(st.sampled_from(self.stage.waiting)))

    def _leave(self, number: int) -> None:
        stage, before = self.stage, list(self.stage.waiting)
        begun = stage.leave(number)
        for each in begun:
            party = stage.owner[each]
            mine = [other for other in before if stage.owner[other] == party]
            assert each == min(mine)
            held = Counter(stage.owner[other] for other in stage.in_flight)
            for other in {stage.owner[other] for other in stage.waiting}:
                if other.scope == party.scope:
                    assert held[party] - 1 <= held[other]
                    self._passed_over(other, party, held[other])

    def _passed_over(self, waits: Party, served: Party, held: int) -> None:
        """While a principal waits with nothing in flight, each other one is served once at most."""
        seen = self.passed_over.setdefault(waits, Counter())
        seen[served] += 1
        assert held > 0 or seen[served] <= 1

    @invariant()
    def keeps_the_bounds(self) -> None:
        stage = self.stage
        scopes = Counter(stage.owner[number].scope for number in stage.waiting)
        assert len(stage.in_flight) <= BOUNDS.in_flight
        assert len(stage.waiting) == stage.turns.waiting <= BOUNDS.waiting
        assert max(scopes.values(), default=0) <= BOUNDS.waiting_per_scope
        assert not stage.waiting or len(stage.in_flight) == BOUNDS.in_flight
        flying = {stage.owner[number] for number in stage.in_flight}
        waiting = {stage.owner[number] for number in stage.waiting}
        for party in [*self.passed_over]:
            if party in flying or party not in waiting:
                del self.passed_over[party]


TestLife = Life.TestCase
