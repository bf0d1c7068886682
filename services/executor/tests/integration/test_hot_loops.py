"""Hot loops: exact counts in few messages and journal entries."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from typing_extensions import override

from libs.pml_local.tests.support.harness import eventually
from pml_common.bus.port import Bus
from pml_common.contracts.catalog import TRACE_RECORDED
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.trace import DecisionTaken, LoopPassed, TraceEvent
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.adapters.bus_journal import BusJournal
from pml_executor.ports import SandboxPool
from services.executor.tests.support.builders import make_command
from services.executor.tests.support.harness import deliver, finish, journal_of, make_dependencies
from services.executor.tests.support.memory_tools import MemoryTools
from services.executor.tests.support.realms import skip_in_realms

pytestmark = pytest.mark.integration

Run = Callable[..., Awaitable[RunFinished]]

MILLION = """let sum = 0;
for (let i = 0; i < 1e6; i++) {« __pml.round("l1");»
  if («__pml.decide("d1", »i % 3 === 0«)») sum += i;
}
await «__pml.at("n1", »mcp.api.a«)»({ sum });
for (const i of [1, 2]) {« __pml.round("l2");» await «__pml.at("n2", »mcp.api.b«)»({ i }); }
return sum;"""
ENDLESS = 'for (;;) {« __pml.round("l1");» «__pml.decide("d1", »args.on«)» || f(); }'
MANY_NODES = """for (let i = 0; i < 2000; i++) {
  for (let n = 0; n < 50; n++) { __pml.round("l" + n); __pml.took("d" + n, "case:" + i % 2); }
}"""


@pytest.fixture
def run(
    deno_pool: SandboxPool,
) -> Run:
    async def run(code: str, bus: Bus, **command: Any) -> RunFinished:
        deps = make_dependencies(bus, deno_pool, MemoryTools())
        (fact,) = await deliver(make_command(code, **command), deps)
        assert isinstance(fact, RunFinished)
        return fact

    return run


def reports(entries: Sequence[TraceEvent]) -> tuple[int, Counter[str]]:
    """Return the number of entries that are reports, and how often each report was made."""
    kinds = [entry for entry in entries if isinstance(entry, LoopPassed | DecisionTaken)]
    made: Counter[str] = Counter()
    for entry in kinds:
        outcome = entry.outcome if isinstance(entry, DecisionTaken) else "round"
        made[f"{entry.node_id} {outcome}"] += max(1, entry.counted)
    return len(kinds), made


async def test_a_million_rounds_are_counted_and_not_written_down_one_by_one(run: Run) -> None:
    bus = MemoryBus()
    fact = await run(MILLION, bus)

    entries = await journal_of(bus, fact)
    written, made = reports(entries)
    assert (fact.error, fact.result) == (None, 166_666_833_333)
    assert written < 2_100
    assert made == {"l1 round": 10**6, "d1 true": 333_334, "d1 false": 666_666, "l2 round": 2}
    assert max(e.iterations for e in entries if isinstance(e, LoopPassed)) == 10**6
    taken = Counter[str]()
    for decision in fact.decisions:
        taken[decision.outcome] += decision.times
    assert taken == {"true": 333_334, "false": 666_666}
    assert fact.executed_path == ("l1", "d1", "n1", "l2", "n2")


async def test_the_messages_of_a_hot_loop_are_few(run: Run) -> None:
    bus = MemoryBus()
    fact = await run(MILLION, bus)
    records = await bus.history(fact.scope, str(fact.workflow_id), of=TRACE_RECORDED)
    assert len(records) < 12


async def test_a_loop_that_never_ends_shows_how_far_it_came(deno_pool: SandboxPool) -> None:
    skip_in_realms(deno_pool)
    queued, now = list[TraceEvent](), 0.0

    class Watched(BusJournal):
        @override
        def note(self, entry: TraceEvent, size: int = 0) -> None:
            queued.append(entry)
            super().note(entry, size)

    bus, command = MemoryBus(), make_command(ENDLESS, {"on": 1}, timeout_s=1.0)  # waits: it is over
    deps = make_dependencies(bus, deno_pool, MemoryTools())
    deps = replace(deps, open_journal=partial(Watched, bus))
    deps = replace(deps, monotonic=lambda: now)  # read again each second
    running = asyncio.create_task(finish(command, deps))
    await eventually(lambda: reports(queued)[1]["l1 round"] > 10_000)
    now = 2.0
    fact = await running

    written, made = reports(await journal_of(bus, fact))
    assert fact.error is not None
    assert fact.error.kind == "timeout"
    assert fact.executed_path == ("l1", "d1")
    assert written < 2_100
    assert made["l1 round"] > 10_000


async def test_all_nodes_together_are_written_down_so_many_times_at_most(run: Run) -> None:
    bus = MemoryBus()
    fact = await run(MANY_NODES, bus)

    written, made = reports(await journal_of(bus, fact))
    assert fact.error is None
    assert written < 5_000 + 150 * 13
    assert set(made.values()) == {1000, 2000}
    assert len(fact.executed_path) == 100
