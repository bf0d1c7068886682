"""Cost of a sandbox over a bare `deno run`: wall time p50/p95/p99 and CPU per process, in ms.

`uv run python bench/sandbox.py [rounds]`; `PML_EXECUTOR_WALLS=off` omits the walls.
"""

import asyncio
import os
import resource
import statistics
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from deno import find_deno_bin

from pml_executor.adapters.deno_command import DenoCommand
from pml_executor.adapters.deno_sandbox import DenoSandbox
from pml_executor.app import sandbox_command
from pml_executor.domain.protocol import Answer, CallMade, Noted, Program, Returned
from pml_executor.domain.resources import cpu_seconds
from pml_executor.domain.walls import ENVIRONMENT
from pml_executor.settings import ExecutorSettings, PoolMode

CALLS = 500
EMPTY = "return 1;"
TYPED = "interface Item { id: number; tags: string[] }\n" + "".join(
    f"const f{i} = (x: Item): number => x.id + {i};\n" for i in range(48)
)
LOOP = f"for (let i = 0; i < {CALLS}; i++) await mcp.api.echo({{ i }}); return 1;"
ONE_CALL = "return await mcp.api.echo({});"
SAY_READY = 'Deno.stdout.writeSync(new TextEncoder().encode("ready"));'
WORKER = """
const text = 'addEventListener("message", (e) => (e.ports[0] ?? self).postMessage("ready"));';
const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
const worker = new Worker(url, { type: "module", deno: { permissions: "none" } });
"""
STAGES = {
    "a process with our flags": SAY_READY,
    "the same and an empty Worker": (
        f"{WORKER} worker.onmessage = () => {SAY_READY} worker.postMessage(null);"
    ),
    "the same and a port for the Worker": (
        f"const {{ port1, port2 }} = new MessageChannel(); {WORKER} "
        f"port1.onmessage = () => {SAY_READY} worker.postMessage(null, [port2]);"
    ),
}
"""Stages of a sandbox's start without our own code."""
MODES: tuple[PoolMode, ...] = ("per_scope", "per_scope_realm") * 3
ROUNDS = "let sum = 0; for (let i = 0; i < 1e6; i++) {%s if (%s) sum += i; } return sum;"
HOT = ROUNDS % ("", "i % 3 === 0")
HOT_REPORTING = ROUNDS % ('__pml.round("l1");', '__pml.decide("d1", i % 3 === 0)')
BUSY = "for (;;) ;"
ALLOCATING = "const all = []; for (;;) { all.push({}); if (all.length > 1e5) all.length = 0; }"
SETTLE_S = 0.03
BUSY_S = 0.25
WARM_UP = 3
Measured = Callable[[], Awaitable[float]]


def cpu_of_children() -> float:
    """CPU milliseconds of ended child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


def cpu_of(pid: int) -> float:
    """CPU milliseconds of a living process, in steps of ten."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    return cpu_seconds(stat, os.sysconf("SC_CLK_TCK")) * 1e3


async def report(label: str, rounds: int, measure: Measured, *, cpu: bool = False) -> None:
    """Measure and print one line; CPU only where each round is one process."""
    for _ in range(WARM_UP):
        await measure()
    before = cpu_of_children()
    times = [await measure() for _ in range(rounds)]
    show(label, times, (cpu_of_children() - before) / rounds if cpu else None)


def show(label: str, times: list[float], cpu: float | None = None) -> None:
    """Print one line."""
    ordered = sorted(times)
    p95, p99 = (ordered[int(len(times) * part)] for part in (0.95, 0.99))
    used = "" if cpu is None else f"   CPU {cpu:5.1f}"
    p50 = statistics.median(times)
    print(f"{label:<46} p50 {p50:7.3f}   p95 {p95:7.3f}   p99 {p99:7.3f}{used}")


async def bare_deno(folder: Path) -> Measured:
    """The floor: a process that prints one number."""
    program = folder / "bare.ts"
    program.write_text("console.log(1);", encoding="utf-8")
    flags = ("--no-prompt", "--no-remote", "--no-npm", "--no-config", "--no-check")

    async def run() -> float:
        began = perf_counter()
        process = await asyncio.create_subprocess_exec(
            find_deno_bin(), "run", *flags, str(program), stdout=asyncio.subprocess.PIPE
        )
        await process.communicate()
        return (perf_counter() - began) * 1e3

    return run


def stage(command: DenoCommand, script: Path, code: str) -> Measured:
    """From the start of a process that runs another script than the host until it says ready."""
    script.write_text(code, encoding="utf-8")
    argv = (*command.argv[:-1], str(script))

    async def run() -> float:
        began = perf_counter()
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, env=ENVIRONMENT
        )
        assert process.stdout is not None
        await process.stdout.readexactly(len("ready"))
        took = (perf_counter() - began) * 1e3
        process.kill()
        await process.wait()
        return took

    return run


def program(code: str) -> Program:
    return Program(code=code, args={}, seed=os.urandom(16).hex(), now=1_700_000_000_000)


class Bench:
    """One measurement per process, as in the service."""

    def __init__(self, command: DenoCommand) -> None:
        self._command = command

    async def cold(self) -> float:
        """Spawn to ready."""
        began = perf_counter()
        sandbox = await DenoSandbox.start(self._command)
        took = (perf_counter() - began) * 1e3
        await sandbox.close()
        return took

    def warm(self, code: str) -> Measured:
        """Program sent to value returned, in a warm process."""

        async def run() -> float:
            sandbox = await DenoSandbox.start(self._command)
            await asyncio.sleep(SETTLE_S)
            began = perf_counter()
            await sandbox.run(program(code))
            while isinstance(message := await sandbox.receive(), Noted):
                pass
            took = (perf_counter() - began) * 1e3
            assert isinstance(message, Returned), message
            await sandbox.close()
            return took

        return run

    async def call(self) -> float:
        """One call from the program to here and back, answered at once; mean of many."""
        sandbox = await DenoSandbox.start(self._command)
        await sandbox.run(program(LOOP))
        began = perf_counter()
        while isinstance(message := await sandbox.receive(), CallMade):
            sandbox.answer(Answer(id=message.id, ok=True, value=None, now=0))
        took = (perf_counter() - began) * 1e3 / CALLS
        await sandbox.close()
        return took

    def kill(self, code: str) -> Measured:
        """From the kill of a process that runs this until nothing is left of it."""

        async def run() -> float:
            sandbox = await DenoSandbox.start(self._command)
            await sandbox.run(program(code))
            await asyncio.sleep(BUSY_S)
            began = perf_counter()
            await sandbox.close()
            return (perf_counter() - began) * 1e3

        return run


async def one_process(mode: PoolMode, code: str, rounds: int) -> None:
    """Consecutive runs in one process, each of a program with one call: value returned, and ready
    again; CPU per run without the process's start and its first runs."""
    command = await sandbox_command(ExecutorSettings(executor_pool_mode=mode))
    resources = replace(command.resources, runs=rounds + WARM_UP + 1, max_growth=1)
    sandbox = await DenoSandbox.start(replace(command, resources=resources))
    ran: list[float] = []
    again: list[float] = []
    before = 0.0
    for turn in range(rounds + WARM_UP):
        if turn == WARM_UP:
            before = cpu_of(sandbox.pid)
        began = perf_counter()
        await sandbox.run(program(code))
        while isinstance(message := await sandbox.receive(), CallMade):
            sandbox.answer(Answer(id=message.id, ok=True, value=None, now=0))
        assert isinstance(message, Returned), message
        ended = perf_counter()
        sandbox.finish()
        assert await sandbox.renew(realm=True)
        ran.append((ended - began) * 1e3)
        again.append((perf_counter() - ended) * 1e3)
    cpu = (cpu_of(sandbox.pid) - before) / rounds
    await sandbox.close()
    show(f"{mode}: a program with one call", ran[WARM_UP:], cpu)
    show(f"{mode}: from its end until ready again", again[WARM_UP:])


async def main(rounds: int) -> None:
    """Print floors first, then ours."""
    command = await sandbox_command(ExecutorSettings(executor_pool_mode="single_use"))
    bench = Bench(command)
    print(f"walls: {command.walls}")
    with tempfile.TemporaryDirectory() as folder:
        await report("bare `deno run`", rounds, await bare_deno(Path(folder)), cpu=True)
        for number, (label, code) in enumerate(STAGES.items()):
            await report(
                label, rounds, stage(command, Path(folder, f"{number}.js"), code), cpu=True
            )
    await report("sandbox: spawn until ready, then killed", rounds, bench.cold, cpu=True)
    await report("sandbox: empty program in a warm process", rounds, bench.warm(EMPTY), cpu=True)
    for mode in MODES:
        await one_process(mode, ONE_CALL, max(200, rounds))
    await report("sandbox: 50 typed lines in a warm process", rounds, bench.warm(TYPED + EMPTY))
    await report("sandbox: a loop of 1e6 rounds with an if", rounds, bench.warm(HOT))
    await report("sandbox: the same, instrumented", rounds, bench.warm(HOT_REPORTING))
    await report("sandbox: one tool call, there and back", max(5, rounds // 5), bench.call)
    await report("sandbox: kill of a busy program", rounds, bench.kill(BUSY))
    await report("sandbox: kill of one that fills its heap", rounds, bench.kill(ALLOCATING))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 50))
