"""P5: workflows a second on two cores, from enough concurrent callers."""

import asyncio
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from time import perf_counter
from types import MappingProxyType

from execution.callers import Http, execute
from execution.floors import CODE
from execution.processor import busy_s, per_workflow, snapshot

from pml_local.stack import Stack

CORES = 2
CALLERS = 8
"""A few less than one executor runs at once (10), so that none waits for a turn."""
SECONDS = 10.0


@dataclass(frozen=True)
class Load:
    """Result of a stack under load; `cpu_ms` of each part per workflow, `seconds` of each workflow
    in ascending order, and the cores in use by all processes of the machine."""

    per_second: float
    cpu_ms: dict[str, float]
    seconds: Sequence[float]
    cores_in_use: float


@contextmanager
def two_cores() -> Generator[None]:
    """Pin this process, and those it starts until the context exits, to two cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:CORES])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


async def saturate(
    stack: Stack,
    *gateways: Http,
    seconds: float = SECONDS,
    code: str = CODE,
    callers: int = CALLERS,
    replicas: Mapping[str, int] = MappingProxyType({}),
) -> Load:
    """Workflows that ended within `seconds`, after a warm-up; the callers take the gateways in
    turn, `replicas` are the processes that do not belong to the stack."""
    each = list(islice(cycle(gateways), callers))
    await _run_for(seconds / 5, each, code)
    before, busy, began = snapshot(stack, replicas), busy_s(), perf_counter()
    took = await _run_for(seconds, each, code)
    lasted, busy = perf_counter() - began, busy_s() - busy
    cpu_ms = per_workflow(before, snapshot(stack, replicas), len(took))
    return Load(len(took) / lasted, cpu_ms, took, busy / lasted)


async def _run_for(seconds: float, callers: Sequence[Http], code: str) -> list[float]:
    end = perf_counter() + seconds
    took: list[float] = []

    async def call(http: Http) -> None:
        while (began := perf_counter()) < end:
            await execute(http, code)
            took.append(perf_counter() - began)

    await asyncio.gather(*map(call, callers))
    return sorted(took)
