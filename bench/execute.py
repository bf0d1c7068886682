"""Cost of one workflow and one tool call, as ratios to their floors in one run.

P1   `pml_execute` with one tool call, warm, over a bare `deno run` of the same code
P2   the same without a warm process
P3   one journaled tool call from inside the sandbox over a raw nats-py request
P5   workflows a second from many callers, over 2 cores that only run bare `deno run`s
P10  time from its deadline until a busy sandbox is gone, at the 99th percentile, in ms

The tool is a stub inside the gateway, so the figures include no tool server. Every workflow runs
the same program, which is known after the first. Everything runs on two cores. `--profile` prints a
workflow's time step by step, and its CPU time part by part.
`uv run python bench/execute.py [--only P1,P5] [--pool MODE] [--profile] [--json]`
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import get_args

sys.path.insert(0, str(Path(__file__).parent.parent))  # when run as a script

from execution.callers import Http, Json, asked, execute, walls_of
from execution.floors import CODE, RUNS, WARM_UP, Floor, bare_deno, p50, raw_request, timed
from execution.kills import overshoots
from execution.processor import per_workflow, snapshot
from execution.throughput import CORES, Load, saturate, two_cores
from execution.timeline import timeline

from libs.pml_local.tests.support.harness import eventually
from pml_common.contracts.learner import ExecutionTrace
from pml_executor.settings import PoolMode
from pml_local.stack import Stack

CALLS = 200


def in_turn(call: str, calls: int = CALLS) -> str:
    """Build a program that makes a call many times; `i` is the number of the round."""
    return f"let last;\nfor (let i = 0; i < {calls}; i++) {{ last = await {call}; }}\nreturn last;"


MANY = in_turn("mcp.pml_stub.echo({ i })")
GOALS = {"P1": 0.8, "P2": 2.5, "P3": 4.0, "P5": 0.8, "P10": 20.0}
PROFILED = 60
COLD = {
    "PML_EXECUTOR_POOL_SIZE": "0",
    "PML_EXECUTOR_POOL_MAX_RUNS": "1",
    "PML_EXECUTOR_POOL_MAX_REALMS": "1",
}
"""No warm process, and no reuse."""


@dataclass(frozen=True)
class Figure:
    """One line of the result; `value` is compared with the goal."""

    name: str
    value: float
    told: str


@dataclass
class Profile:
    """Time and CPU: steps of a workflow on an idle stack, and each part's CPU per workflow,
    sequentially and from many callers. All in milliseconds."""

    steps: dict[str, float] = field(default_factory=dict[str, float])
    cpu_one_by_one: dict[str, float] = field(default_factory=dict[str, float])
    cpu_saturated: dict[str, float] = field(default_factory=dict[str, float])


@dataclass
class Bench:
    """Requested figures and results."""

    only: frozenset[str]
    pool: str | None
    profiled: bool
    folder: Path
    figures: list[Figure] = field(default_factory=list[Figure])
    profile: Profile = field(default_factory=Profile)
    walls: str = ""

    async def run(self) -> None:
        """Measure every requested figure."""
        floor = await bare_deno(self.folder)
        if self.profiled or self.only - {"P2"}:
            async with asked(self.folder / "warm", self._environment()) as (stack, http):
                self.walls = await walls_of(stack)
                await self._warm(stack, http, floor)
        if "P2" in self.only:
            cold = self._environment() | COLD
            async with asked(self.folder / "cold", cold) as (stack, http):
                self.walls = await walls_of(stack)
                self._over_deno("P2", "pml_execute, cold pool", await one_by_one(http), floor)

    def _environment(self) -> dict[str, str]:
        return {} if self.pool is None else {"PML_EXECUTOR_POOL_MODE": self.pool}

    async def _warm(self, stack: Stack, http: Http, floor: Floor) -> None:
        if "P1" in self.only or self.profiled:
            await timed(WARM_UP, lambda: execute(http, CODE))
            before = snapshot(stack)
            warm = await one_by_one(http)
            self.profile.cpu_one_by_one = per_workflow(before, snapshot(stack), RUNS)
            if "P1" in self.only:
                self._over_deno("P1", "pml_execute, warm", warm, floor)
        if self.profiled:
            self.profile.steps = await timeline(stack.nats_url, http, PROFILED)
        if "P3" in self.only:
            await self._calls(stack, http)
        if "P5" in self.only or self.profiled:
            self._throughput(await saturate(stack, http), floor)
        if "P10" in self.only:
            await self._kills(stack, http)

    def _over_deno(self, name: str, what: str, ms: float, floor: Floor) -> None:
        told = f"{what} {ms:.2f} ms / bare deno run {floor.wall_ms:.2f} ms, p50"
        self.figures.append(Figure(name, ms / floor.wall_ms, told))

    async def _calls(self, stack: Stack, http: Http) -> None:
        ms, request = p50(await call_to_call(http)), await raw_request(stack.nats_url)
        told = f"journaled tool call {ms:.2f} ms / raw nats-py request {request:.2f} ms, p50"
        self.figures.append(Figure("P3", ms / request, told))

    def _throughput(self, load: Load, floor: Floor) -> None:
        self.profile.cpu_saturated = load.cpu_ms
        if "P5" not in self.only:
            return
        most = CORES * 1000 / floor.cpu_ms
        told = (
            f"{load.per_second:.1f} workflows/s, {load.cpu_ms['all']:.1f} ms of CPU each / "
            f"{most:.1f} bare deno runs/s, {floor.cpu_ms:.1f} ms each; "
            f"by CPU alone {floor.cpu_ms / load.cpu_ms['all']:.2f}"
        )
        self.figures.append(Figure("P5", load.per_second / most, told))

    async def _kills(self, stack: Stack, http: Http) -> None:
        late = await overshoots(stack, http)
        p99 = late[int(len(late) * 0.99)]
        told = f"ms past the deadline at p99 of {len(late)} kills, p50 {late[len(late) // 2]:.1f}"
        self.figures.append(Figure("P10", p99, told))


async def one_by_one(http: Http) -> float:
    """p50 of one-call workflows, one after another, in ms."""
    await timed(WARM_UP, lambda: execute(http, CODE))
    return p50(await timed(RUNS, lambda: execute(http, CODE)))


async def call_to_call(http: Http, program: str = MANY) -> Sequence[float]:
    """Seconds between the starts of consecutive calls in one long run."""
    workflow = (await execute(http, program))["workflow_id"]

    async def learned() -> list[Json] | None:
        return (await http.get(f"/api/workflows/{workflow}/trace")).json()["traces"]

    traces: list[Json] = await eventually(learned, within=10.0)
    found = ExecutionTrace.model_validate(traces[0])
    starts = sorted(call.started_at for call in found.task_results)
    assert len(starts) == CALLS
    return [(later - earlier) / 1000 for earlier, later in pairwise(starts)]


def show(bench: Bench) -> None:
    """Print the results for people."""
    for figure in bench.figures:
        print(f"{figure.name:<4}{figure.value:6.2f}  (goal {GOALS[figure.name]:g})  {figure.told}")
    print(f"walls: {bench.walls}; pool: {bench.pool or 'default'}")
    if bench.profiled:
        _table("steps of a workflow alone", bench.profile.steps)
        _table("CPU of a workflow, one by one", bench.profile.cpu_one_by_one)
        _table(f"CPU of a workflow, {CORES} cores full", bench.profile.cpu_saturated)


def _table(title: str, rows: Mapping[str, float]) -> None:
    print(f"\n{title}, ms")
    for name, ms in rows.items():
        print(f"  {name:<28}{ms:7.2f}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="What a workflow costs.")
    parser.add_argument("--only", default=",".join(GOALS), help="as in P1,P5")
    parser.add_argument("--pool", choices=get_args(PoolMode))
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


async def main() -> None:
    """Measure and print."""
    asked_for = _arguments()
    only = frozenset(asked_for.only.upper().split(","))
    if unknown := only - GOALS.keys():
        raise SystemExit(f"no such figure: {', '.join(sorted(unknown))}")
    with (
        tempfile.TemporaryDirectory(prefix="pml-bench-", ignore_cleanup_errors=True) as name,
        two_cores(),
    ):
        bench = Bench(only, asked_for.pool, asked_for.profile, Path(name))
        await bench.run()
    if not asked_for.json:
        show(bench)
        return
    figures = {
        figure.name: {"value": figure.value, "told": figure.told} for figure in bench.figures
    }
    profile = {"profile": asdict(bench.profile)} if bench.profiled else {}
    print(json.dumps({**figures, "walls": bench.walls, "pool": bench.pool, **profile}))


if __name__ == "__main__":
    asyncio.run(main())
