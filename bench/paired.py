"""P1, P3 and P5 of two sides in alternation: of two checkouts of this project, each set up, or of
one with two environments. Both serve short blocks in turn, so that the machine's load affects both
alike; what is compared are times and CPU times of one workflow (P1, P5) and of one call (P3).

A side is `CHECKOUT[,VARIABLE=VALUE…]`; copy this file to one that does not have it. Without sides:
this checkout with query sockets, and with NATS alone. Prints the median of each side, and the mean
of the paired ratios with its 95 % interval.
`uv run python bench/paired.py [SIDE SIDE] [--rounds N] [--only P1,P3]`
"""

import argparse
import asyncio
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import IO, Final, cast

sys.path.insert(0, str(Path(__file__).parent.parent))  # when run as a script

from execute import CALLS, MANY, call_to_call
from execution.callers import Http, asked, execute
from execution.floors import CODE, p50, timed
from execution.processor import per_workflow, snapshot
from execution.throughput import saturate, two_cores

from pml_local.stack import Stack

THIS: Final = str(Path(__file__).resolve().parents[1])
SIDES: Final = (THIS, f"{THIS},PML_GATEWAY_SOCKETS=")
WARM_UP, WORKFLOWS, SATURATED_S = 30, 40, 4.0

Figures = dict[str, dict[str, float]]
"""By the name of the figure: `ms` of time, `cpu` in ms."""


async def _p1(stack: Stack, http: Http) -> dict[str, float]:
    before = snapshot(stack)
    took = await timed(WORKFLOWS, lambda: execute(http, CODE))
    return {"ms": p50(took), "cpu": per_workflow(before, snapshot(stack), WORKFLOWS)["all"]}


async def _p3(stack: Stack, http: Http) -> dict[str, float]:
    before = snapshot(stack)
    took = await call_to_call(http)
    return {"ms": p50(took), "cpu": per_workflow(before, snapshot(stack), CALLS)["all"]}


async def _p5(stack: Stack, http: Http) -> dict[str, float]:
    load = await saturate(stack, http, seconds=SATURATED_S)
    return {"ms": 1000 / load.per_second, "cpu": load.cpu_ms["all"]}


MEASURES: Final[dict[str, Callable[[Stack, Http], Awaitable[dict[str, float]]]]] = {
    "P1": _p1,
    "P3": _p3,
    "P5": _p5,
}


async def serve(only: Sequence[str]) -> None:
    """Measure one block for each line of standard input, and print its figures."""
    with tempfile.TemporaryDirectory(prefix="pml-bench-", ignore_cleanup_errors=True) as name:
        async with asked(Path(name), {}) as (stack, http):
            await execute(http, MANY)
            await timed(WARM_UP, lambda: execute(http, CODE))
            print("ready", flush=True)
            while await asyncio.to_thread(sys.stdin.readline):
                found = {figure: await MEASURES[figure](stack, http) for figure in only}
                print(json.dumps(found), flush=True)


class Side:
    """One side, served by this script in a process of the checkout's own environment."""

    def __init__(self, side: str, only: str) -> None:
        checkout, *variables = side.split(",")
        chosen = dict(each.split("=", 1) for each in variables)
        python = Path(checkout).resolve() / ".venv/bin/python"
        script = Path(checkout).resolve() / "bench" / Path(__file__).name
        self._process = subprocess.Popen(
            [python, script, "--serve", "--only", only],
            env={**os.environ, **chosen},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self._into = cast("IO[str]", self._process.stdin)
        self._out = cast("IO[str]", self._process.stdout)

    def await_ready(self) -> None:
        """Wait until it serves."""
        assert self._out.readline() == "ready\n", "a side did not start"

    def block(self) -> Figures:
        """Return the figures of the next block."""
        self._into.write("\n")
        return json.loads(self._out.readline())

    def end(self) -> None:
        """End it, and wait for its exit."""
        self._into.close()
        self._process.wait(60)


def measured(sides: Sequence[str], only: str, rounds: int) -> list[tuple[Figures, Figures]]:
    """Return the figures of both sides by round, each first in every other round."""
    first, second = (Side(side, only) for side in sides)
    found: list[tuple[Figures, Figures]] = []
    try:
        for side in (first, second):
            side.await_ready()
        for number in range(rounds):
            if number % 2 == 0:
                found.append((first.block(), second.block()))
            else:
                later = second.block()
                found.append((first.block(), later))
            print(f"round {number + 1}, load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
    finally:
        first.end()
        second.end()
    return found


def line(name: str, unit: str, pairs: Sequence[tuple[float, float]]) -> str:
    """Compare the two sides of one figure."""
    logs = [math.log(other / one) for one, other in pairs]
    one, other = (statistics.median(column) for column in zip(*pairs, strict=True))
    mean = math.exp(statistics.fmean(logs)) - 1
    half = 1.96 * statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else math.inf
    return f"{name} {unit:<4}{one:8.2f} -> {other:8.2f}   {mean:+.1%} ± {half:.1%}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="P1, P3 and P5 of two sides in alternation.")
    parser.add_argument("sides", nargs="*", default=SIDES, help="CHECKOUT[,VARIABLE=VALUE...], two")
    parser.add_argument("--only", default=",".join(MEASURES), help="as in P1,P5")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    only = wanted.only.upper().split(",")
    if unknown := set(only) - MEASURES.keys():
        raise SystemExit(f"no such figure: {', '.join(sorted(unknown))}")
    if len(wanted.sides) != 2:
        raise SystemExit("name two sides, or none")
    with two_cores():
        if wanted.serve:
            asyncio.run(serve(only))
            return
        found = measured(wanted.sides, ",".join(only), wanted.rounds)
    for name in only:
        for unit in ("ms", "cpu"):
            pairs = [(one[name][unit], other[name][unit]) for one, other in found]
            print(line(name, unit, pairs))


if __name__ == "__main__":
    main()
