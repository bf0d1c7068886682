"""Cost of capabilities in a run in ms, p50 and p95: injecting ten of them, with the goal of 10
ms, one call of one, with the goal of 1 ms, and merging 100 trace events into the end of a run,
with its tree of called capabilities, with the goal of 5 ms. CPU is that of the whole process, which
is more reliable than time on a busy machine.

`uv run python bench/injection.py [rounds] [realm]`; with `realm`, in realms of a process that has
run a program before, each text for the first time.
"""

import asyncio
import os
import resource
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter, process_time
from uuid import UUID

from pml_common.contracts import ids
from pml_common.contracts.capability import InjectedCapability
from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.trace import (
    CapabilityEnd,
    CapabilityStart,
    DecisionTaken,
    ToolEnd,
    ToolStart,
    TraceEvent,
)
from pml_executor.adapters.deno_command import DenoCommand
from pml_executor.adapters.deno_sandbox import DenoSandbox
from pml_executor.app import sandbox_command
from pml_executor.domain.finished import finished
from pml_executor.domain.protocol import Entered, Injected, Left, Noted, Program, Returned
from pml_executor.settings import ExecutorSettings, PoolMode

CAPABILITIES = 10
CALLS = 1_000
EVENTS = 100
SETTLE_S = 0.03
LINES = "".join(f"const f{i} = (x: Item): number => x.id + {i};\n" for i in range(18))
BODY = f"interface Item {{ id: number; tags: string[] }}\n{LINES}return f1(args);"
EMPTY = "return 1;"
FIRST = "return 0;"
LOOP = "for (let i = 0; i < %d; i++) await capabilities.x_0({ id: i }); return 1;"
INSIDE = (
    "const f = async (args) => JSON.parse(JSON.stringify(args)).id;"
    "for (let i = 0; i < %d; i++) await f(JSON.parse(JSON.stringify({ id: i }))); return 1;"
)
EXAMPLE = Path(__file__).parents[1] / "libs/pml_common/examples/cmd.executor.run-workflow.v2.json"
ROOT, CALLED = UUID(int=1), UUID(int=2)
COMMAND = RunWorkflow.model_validate_json(EXAMPLE.read_text(encoding="utf-8")).model_copy(
    update={
        "injected": (
            InjectedCapability(
                capability_id=CALLED,
                name="x:0",
                code_hash="0" * 64,
                called_as=("x_0",),
                instrumented="",
            ),
        )
    }
)
ONE = (Injected(name="x:0", called_as=("x_0",), code="return args.id;"),)


def injected(count: int) -> tuple[Injected, ...]:
    """Distinct capabilities of 20 lines."""
    return tuple(
        Injected(name=f"x:{i}", called_as=(f"x_{i}",), code=f"{BODY} // {i}") for i in range(count)
    )


def cpu() -> float:
    """CPU milliseconds of ended child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1e3


async def run(
    command: DenoCommand, code: str, capabilities: tuple[Injected, ...] = ()
) -> tuple[float, float]:
    """Milliseconds from sending the program to a warm process until its value returns, and the CPU
    of that process."""
    before = cpu()
    sandbox = await DenoSandbox.start(command)
    if command.may_use_realms():
        await sandbox.run(Program(code=FIRST, args={}, seed=os.urandom(16).hex(), now=0))
        await sandbox.receive()
        sandbox.finish()
        assert await sandbox.renew(realm=True)
    await asyncio.sleep(SETTLE_S)
    program = Program(
        code=code, capabilities=capabilities, args={}, seed=os.urandom(16).hex(), now=0
    )
    began = perf_counter()
    await sandbox.run(program)
    while isinstance(message := await sandbox.receive(), Noted | Entered | Left):
        pass
    took = (perf_counter() - began) * 1e3
    assert isinstance(message, Returned), message
    await sandbox.close()
    return took, cpu() - before


def journal() -> Sequence[TraceEvent]:
    """The whole journal of a run, of `EVENTS` entries: its start and end, two decisions, and calls
    of capabilities, each with a tool call inside."""
    calls = (EVENTS - 4) // 4
    entries: list[TraceEvent] = [
        CapabilityStart(trace_id=ROOT, ts=0.0, capability_id=ROOT, args={}),
        *(
            DecisionTaken(trace_id=ROOT, ts=0.0, node_id=node, outcome="true")
            for node in ("d1", "d2")
        ),
    ]
    for occurrence in range(calls):
        at = {"ts": float(occurrence), "occurrence": occurrence}
        called, tool = {"node_id": "n1", **at}, {"node_id": "n1/n1", **at}
        trace = ids.nested_trace_id(ROOT, "n1", occurrence)
        one = {"trace_id": trace, "parent_trace_id": ROOT, "capability_id": CALLED}
        inner = {"trace_id": ids.call_trace_id(ROOT, "n1/n1", occurrence), "tool": "fs:read"}
        entries += [
            CapabilityStart.model_validate({**called, **one, "args": {"id": occurrence}}),
            ToolStart.model_validate(
                {**tool, **inner, "parent_trace_id": trace, "args": {}, "args_hash": "0" * 64}
            ),
            ToolEnd.model_validate(
                {**tool, **inner, "parent_trace_id": trace, "success": True, "duration_ms": 1.0}
            ),
            CapabilityEnd.model_validate({**called, **one, "success": True, "duration_ms": 1.0}),
        ]
    end = CapabilityEnd(
        trace_id=ROOT, ts=float(calls), capability_id=ROOT, success=True, duration_ms=float(calls)
    )
    return [*entries, end]


def merge(entries: Sequence[TraceEvent]) -> tuple[float, float]:
    """Milliseconds and CPU of building a run's end from its journal."""
    began, before = perf_counter(), process_time()
    end = finished(COMMAND, entries)
    took, used = perf_counter() - began, process_time() - before
    assert len(entries) == EVENTS
    assert len(end.nested) == len(end.task_results) == (EVENTS - 4) // 4
    return took * 1e3, used * 1e3


def less(
    measured: Sequence[tuple[float, float]], without: Sequence[tuple[float, float]]
) -> list[tuple[float, float]]:
    """Differences of runs that were made in turn."""
    return [(m[0] - w[0], m[1] - w[1]) for m, w in zip(measured, without, strict=True)]


def show(label: str, measured: Sequence[tuple[float, float]], per: int = 1) -> None:
    """Print one line; `per` calls are in each run."""
    times = sorted(took / per for took, _ in measured)
    p95 = times[int(len(times) * 0.95)]
    used = statistics.median(used / per for _, used in measured)
    print(f"{label:<54} p50 {statistics.median(times):7.3f}   p95 {p95:7.3f}   CPU p50 {used:8.3f}")


async def main(rounds: int, mode: PoolMode) -> None:
    """Measure with and without, alternating; the difference is the cost."""
    command = await sandbox_command(ExecutorSettings(executor_pool_mode=mode))
    ten = injected(CAPABILITIES)
    bare: list[tuple[float, float]] = []
    full, own, calls, few, few_own = bare[:], bare[:], bare[:], bare[:], bare[:]
    for _ in range(rounds):
        bare.append(await run(command, EMPTY))
        full.append(await run(command, EMPTY, ten))
        own.append(await run(command, INSIDE % CALLS))
        calls.append(await run(command, LOOP % CALLS, ONE))
        few_own.append(await run(command, INSIDE % (EVENTS // 2)))
        few.append(await run(command, LOOP % (EVENTS // 2), ONE))
    show("an empty program", bare)
    show(f"the same with {CAPABILITIES} capabilities of 20 typed lines", full)
    show(f"injection of {CAPABILITIES} (goal: 10)", less(full, bare))
    show("one call of a function of the program's own", own, CALLS)
    show("one call of a capability, both reports read (goal: 1)", calls, CALLS)
    show(f"{EVENTS} reports of calls on their way to the executor", less(few, few_own))
    show(f"merging {EVENTS} trace events (goal: 5)", [merge(journal()) for _ in range(rounds)])


if __name__ == "__main__":
    given = [word for word in sys.argv[1:] if word != "realm"]
    asyncio.run(
        main(
            int(given[0]) if given else 30,
            "per_scope_realm" if "realm" in sys.argv else "single_use",
        )
    )
