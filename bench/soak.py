"""Memory, storage and latency over many workflows in a row.

Runs the program of bench/execute.py on the embedded stack and takes a footprint after each
twentieth: resident memory of each part, sizes of the streams and of the services' tables. Fails if
a Python service's memory grew by more than a bound after the first fifth, or if the last thousand
workflows took longer than the first.
`uv run python bench/soak.py [--workflows N] [--callers K] [--json]`
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Final

sys.path.insert(0, str(Path(__file__).parent.parent))  # when run as a script

from execution.callers import Http, asked, execute
from execution.floors import CODE, p50, p95
from execution.footprint import Footprint, Footprints, footprints
from execution.throughput import two_cores

from pml_common.contracts.catalog import SERVICES

WORKFLOWS, FEWEST, CALLERS = 10_000, 100, 1
SAMPLES: Final = 20
FIFTH: Final = SAMPLES // 5
COMPARED: Final = 1000
"""Workflows whose latencies are compared, at each end; of fewer than 3,000, a third."""
GROWTH_SHARE: Final = 0.10
GROWTH_MIB: Final = 20.0
"""Growth of one service after the first fifth that is no leak: bounded caches that still fill, and
the allocator's gaps. Of 10,000 workflows, a service of 100 MiB exceeds it by keeping 4 KiB of each,
which is less than the gateway's row of one."""
SLOWER: Final = 1.25
"""Slowdown that is no trend: the speed of a shared machine varies by as much."""


@dataclass
class Soak:
    """Footprints after the warm-up and after each twentieth, and seconds of each workflow in the
    order of their ends."""

    samples: list[Footprint] = field(default_factory=list[Footprint])
    took: list[float] = field(default_factory=list[float])

    async def run(self, http: Http, taking: Footprints, workflows: int, callers: int) -> None:
        """Run a twentieth to warm up, then all."""
        every = workflows // SAMPLES
        await self._all(http, every, callers)
        self.took.clear()
        for number in range(SAMPLES + 1):
            self.samples.append(await taking.take(len(self.took)))
            if number < SAMPLES:
                await self._all(http, every, callers)

    async def _all(self, http: Http, workflows: int, callers: int) -> None:
        left = iter(range(workflows))

        async def call() -> None:
            for _ in left:
                began = perf_counter()
                await execute(http, CODE)
                self.took.append(perf_counter() - began)

        await asyncio.gather(*(call() for _ in range(callers)))

    @property
    def ends(self) -> tuple[Sequence[float], Sequence[float]]:
        """Seconds of the first and of the last workflows."""
        compared = min(COMPARED, len(self.took) // 3)
        return self.took[:compared], self.took[-compared:]

    @property
    def faults(self) -> list[str]:
        """The bounds that were exceeded."""
        first, last = self.ends
        settled, end = self.samples[FIFTH].memory_mib, self.samples[-1].memory_mib
        found = [
            f"{name} grew from {settled[name]:.1f} to {end[name]:.1f} MiB after the first fifth"
            for name in SERVICES
            if end[name] - settled[name] > GROWTH_SHARE * settled[name] + GROWTH_MIB
        ]
        if p50(last) > SLOWER * p50(first):
            found.append(f"p50 rose from {p50(first):.1f} to {p50(last):.1f} ms")
        return found

    @property
    def report(self) -> dict[str, object]:
        """The result as JSON."""
        first, last = ({"p50_ms": p50(end), "p95_ms": p95(end)} for end in self.ends)
        samples = [asdict(sample) for sample in self.samples]
        return {"first": first, "last": last, "samples": samples, "faults": self.faults}


def show(soak: Soak) -> None:
    """Print the result for people."""
    start, first, settled, end = (soak.samples[number] for number in (0, 1, FIFTH, -1))
    counts = f"{first.workflows}, {settled.workflows} and {end.workflows}"
    print(f"memory, MiB, after {counts}, and growth from the second to the third")
    for name, mib in sorted(end.memory_mib.items()):
        early = first.memory_mib[name], settled.memory_mib[name]
        print(f"  {name:<32}{early[0]:8.1f}{early[1]:8.1f}{mib:8.1f}{mib - early[1]:+8.1f}")
    count = len(soak.took)
    print("latency, ms")
    for label, times in zip(("first", "last"), soak.ends, strict=True):
        print(f"  {label} {len(times):<8} p50 {p50(times):6.1f}   p95 {p95(times):6.1f}")
    print("CPU of the stack and the caller, ms per workflow")
    for label, since, until in (
        ("first fifth", start, settled),
        ("last fifth", soak.samples[-1 - FIFTH], end),
    ):
        each = (until.cpu_ms - since.cpu_ms) / (until.workflows - since.workflows)
        print(f"  {label:<14} {each:6.1f}")
    _growth("streams, bytes per workflow", start.stream_bytes, end.stream_bytes, count)
    _growth("streams, messages per workflow", start.stream_messages, end.stream_messages, count)
    _growth("tables, bytes per workflow", start.table_bytes, end.table_bytes, count)
    print("Postgres per workflow")
    for name, done in end.postgres.items():
        print(f"  {name:<32}{(done - start.postgres[name]) / count:10.2f}")
    for fault in soak.faults:
        print(f"FAILED: {fault}")


def _growth(title: str, start: Mapping[str, int], end: Mapping[str, int], workflows: int) -> None:
    """Print those with at least a hundredth of the growth, the most first, and all together."""
    grown = {name: (end[name] - start[name]) / workflows for name in end}
    together = sum(grown.values())
    print(title)
    for name, each in sorted(grown.items(), key=lambda pair: -pair[1]):
        if each >= together / 100:
            print(f"  {name:<32}{each:10.2f}")
    print(f"  {'all':<32}{together:10.2f}")


async def main() -> int:
    """Soak and print; returns 1 if a bound was exceeded."""
    parser = argparse.ArgumentParser(description="Memory and storage over many workflows.")
    parser.add_argument("--workflows", type=int, default=WORKFLOWS)
    parser.add_argument("--callers", type=int, default=CALLERS)
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    if wanted.workflows < FEWEST:
        parser.error(f"fewer than {FEWEST} workflows show no growth")
    soak = Soak()
    with (
        tempfile.TemporaryDirectory(prefix="pml-bench-", ignore_cleanup_errors=True) as folder,
        two_cores(),
    ):
        async with (
            asked(Path(folder) / "data", {}) as (stack, http),
            footprints(stack) as taking,
        ):
            await soak.run(http, taking, wanted.workflows, wanted.callers)
    if wanted.json:
        print(json.dumps(soak.report))
    else:
        show(soak)
    return int(bool(soak.faults))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
