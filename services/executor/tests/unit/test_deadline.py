"""Remaining time of a run: not shortened by clocks that are set, parks and outages."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from pydantic import JsonValue

from pml_common.contracts.executor import ParkMark, RunWorkflow, WantedCall
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.tool import JsonObject
from pml_common.outages import Outage
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.domain.deadline import ClockReading, RunTime, run_time
from pml_executor.domain.events import run_started
from pml_executor.domain.journal import RunJournal
from services.executor.tests.support.builders import make_command
from services.executor.tests.support.fakes import crashing
from services.executor.tests.support.harness import finish, make_dependencies
from services.executor.tests.support.memory_sandbox import MemoryPool, ProgramApi
from services.executor.tests.support.memory_tools import MemoryTools

T0 = 1_800_000_000_000.0
"""Start of these tests' runs, in Unix milliseconds."""
HERE = 5000.0
"""The same moment on the monotonic clock, in seconds."""


@dataclass
class Clocks:
    """Manual clocks: `passed` seconds on both, and `turned_by` on the wall clock alone."""

    passed: float = 0.0
    turned_by: float = 0.0
    outages: list[Outage] = field(default_factory=list[Outage])

    def now(self) -> float:
        return T0 + (self.passed + self.turned_by) * 1000

    def monotonic(self) -> float:
        return HERE + self.passed

    def look(self) -> tuple[float, Sequence[Outage]]:
        return self.monotonic(), self.outages

    def away(self, began: float, ended: float) -> None:
        self.outages.append(Outage(HERE + began, HERE + ended))

    def time_of(self, command: RunWorkflow, *marks: ParkMark, max_away: float = 600.0) -> RunTime:
        journal = RunJournal([run_started(command, T0)], marks)
        now = ClockReading(self.now(), *self.look())
        return run_time(command, journal, now, max_away, self.look)


@pytest.fixture
def command() -> RunWorkflow:
    """A run of twenty seconds, under a grant for an hour."""
    made = make_command("")
    expires_at = datetime.fromtimestamp(T0 / 1000 + 3600, UTC)
    grant = made.grant.model_copy(update={"expires_at": expires_at})
    return made.model_copy(update={"timeout_s": 20.0, "grant": grant})


def mark(at: float, *, parked: bool) -> ParkMark:
    wanted = WantedCall(node_id="n1", occurrence=0, tool="mail:send", args_hash="", args={})
    return ParkMark(command_id=uuid4(), ts=T0 + at * 1000, wanted=wanted if parked else None)


@pytest.mark.parametrize("turned_by", [3600.0, -3600.0])
def test_a_clock_that_jumps_takes_and_gives_a_run_in_flight_nothing(
    command: RunWorkflow, turned_by: float
) -> None:
    clocks = Clocks()
    time = clocks.time_of(command)
    clocks.passed, clocks.turned_by = 5.0, turned_by
    assert time.remaining() == 15.0


def test_a_run_taken_over_has_what_is_left_and_never_more_than_its_time(
    command: RunWorkflow,
) -> None:
    assert Clocks(passed=12.0).time_of(command).remaining() == 8.0
    assert Clocks(passed=25.0).time_of(command).remaining() == -5.0
    assert Clocks(passed=12.0, turned_by=-3600.0).time_of(command).remaining() == 20.0


def test_the_time_of_a_run_stands_still_while_the_bus_is_away(command: RunWorkflow) -> None:
    clocks = Clocks()
    clocks.away(-50.0, -40.0)
    time = clocks.time_of(command)
    clocks.passed = 5.0
    assert time.remaining() == 15.0
    clocks.away(2.0, 90.0)
    clocks.passed = 90.0
    assert time.remaining() == 18.0
    clocks.passed = 100.0
    assert time.remaining() == 8.0


def test_an_outage_before_a_run_is_taken_over_is_not_its_own_either(command: RunWorkflow) -> None:
    clocks = Clocks(passed=100.0)
    clocks.away(-30.0, 4.0)  # only what came after the run began is
    clocks.away(10.0, 96.0)
    time = clocks.time_of(command)
    assert time.remaining() == pytest.approx(10.0)
    clocks.away(100.0, 103.0)
    clocks.passed = 105.0
    assert time.remaining() == pytest.approx(8.0)


def test_an_outage_while_a_run_is_parked_is_not_counted_twice(command: RunWorkflow) -> None:
    clocks = Clocks(passed=100.0)
    clocks.away(5.0, 50.0)  # parked from 10 to 90: five seconds of it are the run's
    time = clocks.time_of(command, mark(10, parked=True), mark(90, parked=False))
    assert time.remaining() == pytest.approx(20.0 - (10.0 - 5.0) - 10.0)


def test_outages_are_made_good_up_to_a_bound_and_to_the_grants_end(command: RunWorkflow) -> None:
    clocks = Clocks(passed=100.0)
    clocks.away(0.0, 100.0)
    assert clocks.time_of(command).remaining() == pytest.approx(20.0)
    assert clocks.time_of(command, max_away=90.0).remaining() == pytest.approx(10.0)
    expires_at = datetime.fromtimestamp(T0 / 1000 + 140, UTC)
    soon = command.grant.model_copy(update={"expires_at": expires_at})
    expiring = command.model_copy(update={"grant": soon})
    assert clocks.time_of(expiring).remaining() == pytest.approx(10.0)  # ends 30 s before it
    first = Clocks().time_of(command.model_copy(update={"timeout_s": 3595.0}))
    assert (
        first.remaining() == 3595.0
    )  # a grant that ends sooner takes nothing of the run's own time


async def two_calls(api: ProgramApi, args: JsonObject) -> JsonValue:
    return [await api.call("n1", "api:a"), await api.call("n2", "api:b")]


async def never_ending(api: ProgramApi, args: JsonObject) -> JsonValue:
    await asyncio.Event().wait()


async def test_a_call_after_the_clock_jumped_has_the_time_that_the_run_has() -> None:
    clocks = Clocks(turned_by=(datetime.now(UTC).timestamp() * 1000 - T0) / 1000)

    class Turning(MemoryTools):
        async def call(self, query: CallTool) -> ToolOutcome:
            outcome = await super().call(query)
            clocks.turned_by += 1800.0
            return outcome

    tools = Turning()
    deps = make_dependencies(MemoryBus(), MemoryPool({"two": two_calls}), tools)
    fact = await finish(make_command("two"), replace(deps, now=clocks.now))
    assert fact.success, fact.error
    assert all(asked.timeout_s > 10 for asked in tools.asked), tools.asked


async def test_a_run_that_three_executors_with_other_clocks_took_over_ends_well() -> None:
    bus, tools, pool = MemoryBus(), MemoryTools(), MemoryPool({"two": two_calls})
    command, real = make_command("two"), make_dependencies(bus, pool, tools).now
    for ahead_ms, effects in ((1_800_000.0, 4), (-1_800_000.0, 3)):
        mortal_bus, mortal_tools, _ = crashing(bus, tools, effects, True)
        mortal = make_dependencies(mortal_bus, pool, mortal_tools)
        turned = replace(mortal, now=lambda ahead_ms=ahead_ms: real() + ahead_ms)
        with pytest.raises(RuntimeError):
            await finish(command, turned)
    fact = await finish(command, make_dependencies(bus, pool, tools))
    assert fact.success, fact.error
    assert tools.made == {"api:a": 1, "api:b": 1}


async def test_a_run_whose_time_was_an_outage_is_not_out_of_time() -> None:
    bus, pool = MemoryBus(), MemoryPool({"two": two_calls})
    mortal_bus, mortal_tools, _ = crashing(bus, MemoryTools(), 2, True)
    command = make_command("two")
    with pytest.raises(RuntimeError):
        await finish(command, make_dependencies(mortal_bus, pool, mortal_tools))
    deps = make_dependencies(bus, pool, MemoryTools())
    clocks = Clocks(passed=90.0)
    later = replace(
        deps,
        now=lambda: deps.now() + 90_000,
        monotonic=clocks.monotonic,
        outages=lambda: [Outage(HERE + 1.0, HERE + 89.0)],
    )
    fact = await finish(command, later)
    assert fact.success, fact.error


async def test_a_run_ends_as_soon_as_the_time_that_was_made_good_is_over() -> None:
    clocks, looks = Clocks(), 0

    def monotonic() -> float:
        """At the second reading the run's time is over, but for an outage reported by then."""
        nonlocal looks
        looks += 1
        clocks.passed = 0.0 if looks == 1 else 30.0 if looks < 4 else 60.0
        return clocks.monotonic()

    deps = make_dependencies(MemoryBus(), MemoryPool({"wait": never_ending}), MemoryTools())
    clocks.away(0.0, 29.98)
    deps = replace(deps, monotonic=monotonic, outages=lambda: clocks.outages)
    fact = await finish(make_command("wait", timeout_s=0.04), deps)  # waits: it is over
    assert fact.error is not None
    assert fact.error.kind == "timeout"
    assert looks >= 4
