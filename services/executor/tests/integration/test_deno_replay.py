"""Real programs whose executor is killed at every append and every call end as undisturbed ones."""

import asyncio
import random
from contextlib import suppress

import pytest

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.ports import SandboxPool
from services.executor.tests.support.builders import capability, make_command
from services.executor.tests.support.fakes import crashing
from services.executor.tests.support.harness import deliver, journal_of, make_dependencies
from services.executor.tests.support.memory_tools import MemoryTools

pytestmark = pytest.mark.integration


PROGRAMS = {
    "one after the other": """
        const a = await __pml.at("n1", mcp.api.a)({ now: Date.now(), r: Math.random() });
        console.log(a);
        if (__pml.decide("d1", new Date().getTime() > 0)) {
          const b = await __pml.at("n2", mcp.api.b)({ a, id: crypto.randomUUID() });
          return [b, await __pml.at("n3", mcp.api.c)({ b, now: Date.now() })];
        }""",
    "chains side by side": """
        return await Promise.all([3, 2, 1, 0].map(async (hops) => {
          const a = await __pml.at("n1", mcp.api.a)({ hops });
          for (let i = 0; i < hops; i++) await null; // the shorter way may overtake
          const b = await __pml.at("n2", mcp.api.b)({ a, r: Math.random(), now: Date.now() });
          return await __pml.at("n3", mcp.api.c)({ b });
        }));""",
    "timers between calls": """
        const late = new Promise((done) => setTimeout(done, 15)).then(
          () => __pml.at("n1", mcp.api.a)({ now: Date.now() }));
        const first = await __pml.at("n2", mcp.api.b)({ now: Date.now() });
        return [first, await late];""",
    "a race": """
        const slow = new Promise((done) => setTimeout(() => done("timer"), 5));
        const won = await Promise.race([__pml.at("n1", mcp.api.a)({}).then(() => "call"), slow]);
        if (__pml.decide("d1", won === "call")) return await __pml.at("n2", mcp.api.b)({ won });
        return await __pml.at("n3", mcp.api.c)({ won });""",
    "a hot loop before, between and after calls": """
        let done = 0;
        for (const rounds of [3, 2000, 2]) {
          __pml.round("l1");
          for (let i = 0; i < rounds; i++) {
            __pml.round("l2");
            if (__pml.decide("d1", i % 2)) done++;
          }
          await __pml.at("n1", mcp.api.a)({ done });
        }
        for (let i = 0; i < 700; i++) { __pml.round("l3"); __pml.took("d2", "case:" + i % 5); }
        return done;""",
    "capabilities side by side and inside one another": """
        const all = await Promise.all([2, 1, 0].map(async (i) => {
          for (let n = 0; n < i; n++) await null;
          return await __pml.at("n1", capabilities.x_outer)({ i, r: Math.random() });
        }));
        return [all, await __pml.at("n2", capabilities.x_inner)({ now: Date.now() })];""",
    "a part that is missing": """
        const a = await __pml.at("n1", mcp.api.a)({ now: Date.now() });
        const b = await __pml.at("n2", mcp.api.b)({ a });
        return __pml.returned("n2", ["b"], "b.b", 4, 16, b.b);""",
}
CAPABILITIES = (
    capability(
        "x:outer",
        """const a = await __pml.at("n1", mcp.api.a)({ i: args.i, r: Math.random() });
        console.log(a);
        if (__pml.decide("d1", args.i % 2)) return await __pml.at("n2", mcp.api.b)({ a });
        return await __pml.at("n3", capabilities.x_inner)({ a, id: crypto.randomUUID() });""",
    ),
    capability("x:inner", 'return await __pml.at("n1", mcp.api.c)({ args, now: Date.now() });'),
)


def unsteady_tools(seed: int) -> MemoryTools:
    """Build tools that take up to a few milliseconds, a different time at each call."""
    chance = random.Random(seed)  # noqa: S311 - the same times for the same seed

    async def slow(args: JsonObject) -> ToolOutcome:
        await asyncio.sleep(chance.random() / 100)  # waits: calls end in any order
        return ToolOutcome(status="ok", result=args)

    return MemoryTools(dict.fromkeys(("api:a", "api:b", "api:c"), slow))


@pytest.mark.parametrize(
    ("name", "after"),
    [
        pytest.param(name, after, marks=[] if after == place % 2 else pytest.mark.nightly)
        for place, name in enumerate(PROGRAMS)
        for after in (False, True)
    ],
)
async def test_a_program_ends_the_same_wherever_its_executor_dies(
    deno_pool: SandboxPool,
    name: str,
    after: bool,
) -> None:
    deaths = 0
    for effects in range(1, 60):
        bus, tools = MemoryBus(), unsteady_tools(effects)
        command = make_command(PROGRAMS[name], injected=CAPABILITIES)
        mortal_bus, mortal_tools, died = crashing(bus, tools, effects, after)
        with suppress(RuntimeError):
            await deliver(command, make_dependencies(mortal_bus, deno_pool, mortal_tools))
        async with asyncio.timeout(PATIENCE_S):
            (fact,) = await deliver(command, make_dependencies(bus, deno_pool, tools))

        assert isinstance(fact, RunFinished)
        assert fact.error is None
        assert (fact.result is None) == fact.void == (name == "a part that is missing")
        # A gateway joins a repeated question to the first; whatever else was called, was new.
        assert sum(tools.made.values()) == len(fact.task_results)
        reports = [
            (entry.type, entry.node_id, entry.occurrence)
            for entry in await journal_of(bus, command)
            if entry.type in ("decision", "loop")
        ]
        assert len(set(reports)) == len(reports)
        traces = [
            entry.trace_id
            for entry in await journal_of(bus, command)
            if entry.type == "capability_start"
        ]
        assert len(set(traces)) == len(traces) == 1 + len(fact.nested)
        deaths += died()
        if not died():
            break
    assert deaths > 3
