"""Workflows a second with one and with two executors, and with one, two and three gateways.

For each stack: workflows a second, the CPU of each part, and the bound. That is the cores, where
they are nearly full; a service, where its one Python process nearly fills a core; else waiting, for
disks or for other processes.
`uv run python bench/growth.py [--callers N] [--seconds S] [--json]`
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))  # when run as a script

from execution.callers import Http, asked, caller_of
from execution.floors import p50, p95
from execution.replicas import replica
from execution.throughput import CORES, saturate, two_cores

from pml_local.composition import IN_FLIGHT_VARIABLE
from pml_local.services import GATEWAY
from pml_local.stack import Stack

STACKS: Mapping[str, Sequence[str]] = {
    "one of each": (),
    "2 executors": ("executor 2",),
    "2 gateways": ("gateway 2",),
    "3 gateways": ("gateway 2", "gateway 3"),
    "2 of both": ("executor 2", "gateway 2"),
}
"""Processes besides those of the stack, each with its service's name first."""
CALLERS, SECONDS = 12, 8.0
FULL = 0.85
"""Share of a core, or of all, from which it counts as full: switching leaves gaps."""
_SEVERAL_CORES = frozenset({"sandboxes", "postgres", "nats"})
"""Parts that can use more than one core; each other one is a process with one busy thread."""


@dataclass(frozen=True)
class Growth:
    """Throughput of one stack, CPU milliseconds of each part per workflow, cores in use by each
    part, and by all processes of the machine."""

    stack: str
    per_second: float
    p50_ms: float
    p95_ms: float
    cpu_ms: Mapping[str, float]
    cores: Mapping[str, float]
    cores_in_use: float

    @property
    def bound(self) -> str:
        """The resource that is full."""
        others = max(0.0, self.cores_in_use - sum(self.cores.values()))
        used = f"{self.cores_in_use:.2f} of {CORES} cores in use, {others:.2f} by other work"
        if self.cores_in_use >= FULL * CORES:
            return f"the cores ({used})"
        alone = {name: busy for name, busy in self.cores.items() if name not in _SEVERAL_CORES}
        name, busy = max(alone.items(), key=lambda pair: pair[1])
        if busy >= FULL:
            return f"{name}, {busy:.2f} of its one core"
        return f"waiting ({used}; of one process most by {name}, {busy:.2f})"


class Bench:
    """A stack, and the load on it."""

    def __init__(self, stack: Stack, http: Http, callers: int, seconds: float) -> None:
        self._stack = stack
        self._http = http
        self._callers = callers
        self._seconds = seconds
        self._env = in_flight(callers)

    async def measure(self, name: str, further: Sequence[str]) -> Growth:
        """Measure with further processes of some services."""
        async with AsyncExitStack() as running:
            gateways, replicas = [self._http], dict[str, int]()
            for process in further:
                other = await running.enter_async_context(replica(self._stack, process, self._env))
                replicas[process] = other.pid
                if other.service == GATEWAY:
                    gateways.append(await running.enter_async_context(caller_of(other.url)))
            load = await saturate(
                self._stack,
                *gateways,
                seconds=self._seconds,
                callers=self._callers,
                replicas=replicas,
            )
        rate = load.per_second
        cores = {part: ms * rate / 1000 for part, ms in load.cpu_ms.items() if part != "all"}
        times = p50(load.seconds), p95(load.seconds)
        return Growth(name, rate, *times, load.cpu_ms, cores, load.cores_in_use)


def in_flight(callers: int) -> dict[str, str]:
    """Settings of gateways in which no caller waits for a turn."""
    return {IN_FLIGHT_VARIABLE: str(callers)}


def show(found: Sequence[Growth]) -> None:
    """Print the results for people."""
    for each in found:
        print(
            f"{each.stack:<12} {each.per_second:6.1f} workflows/s, p50 {each.p50_ms:.0f} ms, "
            f"p95 {each.p95_ms:.0f} ms, {each.cpu_ms['all']:.1f} ms of CPU each; "
            f"bound: {each.bound}"
        )
        print("   " + ", ".join(f"{part} {ms:.2f}" for part, ms in each.cpu_ms.items()))


async def main() -> None:
    """Measure each stack in turn, and print."""
    parser = argparse.ArgumentParser(description="Throughput of several processes of a service.")
    parser.add_argument("--callers", type=int, default=CALLERS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="pml-bench-", ignore_cleanup_errors=True) as folder,
        two_cores(),
    ):
        async with asked(Path(folder) / "data", in_flight(wanted.callers)) as (stack, http):
            bench = Bench(stack, http, wanted.callers, wanted.seconds)
            found = [await bench.measure(name, further) for name, further in STACKS.items()]
    if wanted.json:
        print(json.dumps([{**asdict(each), "bound": each.bound} for each in found]))
    else:
        show(found)


if __name__ == "__main__":
    asyncio.run(main())
