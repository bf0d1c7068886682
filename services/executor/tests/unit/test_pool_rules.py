"""Rules of the pool: its capacity, idle processes, sharing, and the limits of a process."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_executor.domain.pool import IdleItems, PoolCapacity, process_owner
from pml_executor.domain.resources import Resources, cpu_seconds
from services.executor.tests.support.builders import make_command

FEW = st.integers(0, 6)


@given(most=st.integers(0, 8), counts=st.tuples(FEW, FEW, FEW, FEW, FEW, FEW, FEW))
def test_no_more_is_started_than_is_wanted_and_there_is_room_for(
    most: int, counts: tuple[int, int, int, int, int, int, int]
) -> None:
    spares, waiting, spare, starting, idle, busy, ending = counts
    capacity = PoolCapacity(most, spares, waiting, spare, starting, idle, busy, ending)
    taken = spare + starting + idle + busy + ending
    assert 0 <= capacity.to_start <= max(0, spares + waiting - spare - starting)
    assert capacity.to_start == 0 or taken + capacity.to_start <= most
    assert 0 <= capacity.short_for_waiters <= waiting
    assert 0 <= capacity.short_for_spares <= spares
    if capacity.short_for_waiters + capacity.short_for_spares > 0:
        assert taken + capacity.to_start >= most


@pytest.mark.parametrize(
    ("capacity", "starts", "pressing", "missing"),
    [
        (PoolCapacity(10, 2), 2, 0, 0),
        (PoolCapacity(10, 2, spare=1, busy=5), 1, 0, 0),
        (PoolCapacity(4, 2, waiting=3), 4, 0, 1),
        (PoolCapacity(4, 1, waiting=1, busy=2, idle=2), 0, 1, 1),
        (PoolCapacity(4, 1, waiting=1, busy=2, idle=1, ending=1), 0, 0, 1),
        (PoolCapacity(4, 1, waiting=1, busy=2, idle=1, starting=1), 0, 0, 1),
        (PoolCapacity(4, 1, busy=2, idle=2), 0, 0, 1),
        (PoolCapacity(4, 1, spare=1, busy=1, idle=2), 0, 0, 0),
        (PoolCapacity(0, 0, idle=1), 0, 0, 0),
    ],
    ids=[
        "empty",
        "one spare short",
        "more wanted than capacity",
        "full of idle ones",
        "one is ending",
        "one is starting",
        "no place for a spare",
        "all there",
        "closed",
    ],
)
def test_who_waits_presses_more_than_a_spare_that_is_missing(
    capacity: PoolCapacity, starts: int, pressing: int, missing: int
) -> None:
    assert (capacity.to_start, capacity.short_for_waiters, capacity.short_for_spares) == (
        starts,
        pressing,
        missing,
    )


def test_an_owner_gets_its_own_that_came_last() -> None:
    idle = IdleItems[str, int]()
    for now, (owner, thing) in enumerate([("a", 1), ("b", 2), ("a", 3)]):
        idle.put(owner, thing, float(now))
    assert len(idle) == 3
    assert [idle.take("a"), idle.take("a"), idle.take("a")] == [3, 1, None]
    assert idle.take("b") == 2
    assert len(idle) == 0


def test_the_oldest_goes_first_and_only_if_it_is_old_enough() -> None:
    idle = IdleItems[str, int]()
    idle.put("a", 1, 10.0)
    idle.put("b", 2, 20.0)
    assert idle.oldest(9.0) is None
    assert [idle.oldest(15.0), idle.oldest(15.0), idle.oldest(20.0)] == [1, None, 2]
    assert idle.oldest(99.0) is None


def test_a_process_of_one_run_has_no_room_to_grow() -> None:
    assert Resources(max_rss_mib=512).max_growth_mib == 0
    assert Resources(max_rss_mib=512, runs=2).max_growth_mib == 64
    assert Resources(max_rss_mib=512, runs=2, max_growth=1 / 2).max_growth_mib == 256
    assert Resources(max_rss_mib=512).max_data_growth_mib == 0
    assert Resources(max_rss_mib=512, runs=2).max_data_growth_mib == 512


def test_what_a_process_has_kept_is_not_missing_to_its_next_run() -> None:
    resources = Resources(max_rss_mib=512, runs=2)
    assert resources.rss_for(30.0) == 542
    assert resources.rss_for(-30.0) == 512


def test_processor_time_is_read_past_a_name_with_spaces_and_brackets() -> None:
    rest = " ".join(["S", *map(str, range(1, 11)), "250", "50", "0", "0"])
    assert cpu_seconds(f"7 (a) b) {rest}", 100) == 3.0
    assert Resources(max_cpu_s=10, runs=3).rlimits["RLIMIT_CPU"] == (10, 35)


@pytest.mark.parametrize("approved_by", [None, "ana"])
def test_what_a_person_agreed_to_shares_no_process(approved_by: str | None) -> None:
    command = make_command("return 1;")
    grant = command.grant.model_copy(update={"approved_by": approved_by})
    owner = process_owner(command.model_copy(update={"grant": grant}))
    assert owner == (None if approved_by else command.scope)
