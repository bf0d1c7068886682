"""P10: the time from its deadline until a busy sandbox process is gone."""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import time
from uuid import UUID

from execution.callers import Http, ask
from execution.processor import below, children, own

from libs.pml_local.tests.support.harness import eventually, stack_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.contracts.catalog import TRACE_RECORDED
from pml_common.contracts.executor import TraceRecorded
from pml_common.contracts.scope import Scope
from pml_local.stack import Stack

KILLS = 120
_TIMEOUT_S = 0.25
_BUSY = (
    "for (;;);",
    "for (;;) await null;",
    "const all = []; for (;;) { all.push({}); if (all.length > 1e5) all.length = 0; }",
    'return /^(a+)+$/.test("a".repeat(40) + "b");',
    "const turn = () => Promise.resolve().then(turn); return await turn();",
)
_SCOPE = Scope(org="local", project="default")
_SETTLED_FOR_S = 0.05


@dataclass
class Deaths:
    """End times of processes, in seconds of the wall clock."""

    at: dict[int, float] = field(default_factory=dict[int, float])
    _watched: dict[int, int] = field(default_factory=dict[int, int])

    def watch(self, pid: int) -> None:
        """Record this process's end; an already ended one is ignored."""
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        self._watched[pid] = descriptor
        asyncio.get_running_loop().add_reader(descriptor, self._ended, pid)

    def _ended(self, pid: int) -> None:
        self.at[pid] = time()
        self._let_go(pid)

    def _let_go(self, pid: int) -> None:
        descriptor = self._watched.pop(pid)
        asyncio.get_running_loop().remove_reader(descriptor)
        os.close(descriptor)

    def close(self) -> None:
        """Stop watching."""
        for pid in list(self._watched):
            self._let_go(pid)


async def overshoots(stack: Stack, http: Http, kills: int = KILLS) -> list[float]:
    """Sorted milliseconds from each run's deadline (its start in the journal plus its timeout) to
    the end of the last process of its sandbox."""
    bus = await NatsBus.connect(
        stack.nats_url, service="bench", identity=stack_identity(stack.home)
    )
    try:
        found = [await _overshoot(stack, http, bus, _BUSY[i % len(_BUSY)]) for i in range(kills)]
    finally:
        await bus.drain()
    return sorted(found)


async def _overshoot(stack: Stack, http: Http, bus: NatsBus, program: str) -> float:
    executor, deaths = stack.pid_of("executor"), Deaths()
    sandboxes = await _settled(executor)
    for pid in set[int]().union(*sandboxes):
        deaths.watch(pid)
    try:
        answer = await ask(http, program, _TIMEOUT_S)
        killed: set[int] = await eventually(lambda: _gone(sandboxes, deaths), within=5.0)
    finally:
        deaths.close()
    error = answer["error"]
    assert isinstance(error, dict), answer
    assert error["kind"] == "timeout", answer
    began = await _began(bus, UUID(str(answer["workflow_id"])))
    return (max(deaths.at[pid] for pid in killed) - began - _TIMEOUT_S) * 1000


async def _settled(executor: int) -> Sequence[set[int]]:
    """The processes of each sandbox, once the pool is idle."""
    while True:
        sandboxes = _sandboxes(executor)
        await asyncio.sleep(_SETTLED_FOR_S)
        if sandboxes and sandboxes == _sandboxes(executor):
            return [set(sandbox) for sandbox in sandboxes]


def _sandboxes(executor: int) -> dict[frozenset[int], float]:
    """The processes of each sandbox, with their CPU milliseconds."""
    found: dict[frozenset[int], float] = {}
    for child in children(executor):
        pids = frozenset({child, *below(child)})
        found[pids] = sum(own(pid) for pid in pids)
    return found


def _gone(sandboxes: Sequence[set[int]], deaths: Deaths) -> set[int]:
    """All processes of the sandboxes with an ended process, once all of them have ended."""
    killed = [sandbox for sandbox in sandboxes if sandbox & deaths.at.keys()]
    pids = set[int]().union(*killed)
    return pids if pids <= deaths.at.keys() else set()


async def _began(bus: NatsBus, workflow_id: UUID) -> float:
    """The run's start in its journal, in seconds."""
    first = (await bus.history(_SCOPE, str(workflow_id), of=TRACE_RECORDED))[0].message
    assert isinstance(first, TraceRecorded)
    return first.entries[0].ts / 1000
