"""P5: workflows a second on two cores, from enough concurrent callers."""

import asyncio
import os
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter

from execution.callers import Http, execute
from execution.floors import CODE
from execution.processor import per_workflow, snapshot

from pml_local.stack import Stack

CORES = 2
CALLERS = 8
"""More would only wait: the executor runs 8 workflows at once."""
SECONDS = 10.0


@dataclass(frozen=True)
class Load:
    """Result of a saturated stack; `cpu_ms` of each part per workflow."""

    per_second: float
    cpu_ms: dict[str, float]


@contextmanager
def two_cores() -> Generator[None]:
    """Pin this process, and those it starts until the context exits, to two cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:CORES])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


async def saturate(stack: Stack, http: Http, seconds: float = SECONDS) -> Load:
    """Number of workflows that ended within `seconds`, after a warm-up."""
    await _run_for(seconds / 5, http)
    before, began = snapshot(stack), perf_counter()
    done = await _run_for(seconds, http)
    took = perf_counter() - began
    return Load(done / took, per_workflow(before, snapshot(stack), done))


async def _run_for(seconds: float, http: Http) -> int:
    end = perf_counter() + seconds

    async def caller() -> int:
        done = 0
        while perf_counter() < end:
            await execute(http, CODE)
            done += 1
        return done

    return sum(await asyncio.gather(*(caller() for _ in range(CALLERS))))
