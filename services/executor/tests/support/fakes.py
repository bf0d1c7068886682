"""Fakes: sandbox processes in memory, and an executor that crashes at a given effect."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus.port import Bus
from pml_common.contracts.base import Message
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.adapters.deno_pool import DenoPool, PoolSize
from pml_executor.ports import SandboxUnavailable, Tools
from services.executor.tests.support.memory_sandbox import MemorySandbox
from services.executor.tests.support.memory_tools import MemoryTools

T = TypeVar("T")

ACME = Scope(org="acme", project="webapp")
OTHER = Scope(org="acme", project="shop")
THIRD = Scope(org="beta", project="webapp")


class HeldTools(MemoryTools):
    """Tools whose `fs:write` begins and waits until it is released."""

    def __init__(self) -> None:
        super().__init__({"fs:write": self._write})
        self.begun, self.release = asyncio.Event(), asyncio.Event()

    async def _write(self, _: JsonObject) -> ToolOutcome:
        self.begun.set()
        await self.release.wait()
        return ToolOutcome(status="ok")


class Process(MemorySandbox):
    """A fake process; a renewal waits for `renewable` and succeeds if `fit`. `realms` counts those
    for a realm."""

    def __init__(self) -> None:
        super().__init__({})
        self.alive = True
        self.finished = False
        self.fit = True
        self.realms = 0
        self.renewable = asyncio.Event()
        self.renewable.set()

    def finish(self) -> None:
        self.finished = True

    def kill(self) -> None:
        super().kill()
        self.finished = False

    async def renew(self, *, realm: bool = False) -> bool:
        await self.renewable.wait()
        self.realms += realm
        return self.fit

    async def close(self) -> None:
        await super().close()
        self.alive = False


class Factory:
    """Starts fake processes; `moods` lists what each start does, in order."""

    def __init__(self, *moods: str) -> None:
        self.moods = list(moods)
        self.started: list[Process] = []
        self.released = asyncio.Event()

    async def __call__(self) -> Process:
        mood = self.moods.pop(0) if self.moods else "quick"
        if mood == "stuck":
            await self.released.wait()
        if mood == "broken":
            raise SandboxUnavailable("deno is not there")
        if mood == "buggy":
            raise ValueError("a bug")
        self.started.append(Process())
        return self.started[-1]

    @property
    def living(self) -> int:
        return sum(process.alive for process in self.started)


@asynccontextmanager
async def pool_of(
    factory: Factory,
    spares: int = 2,
    max_processes: int = 10,
    lease_timeout_s: float = 30.0,
    idle_s: float = 60.0,
    realms: Callable[[], bool] = lambda: False,
) -> AsyncGenerator[DenoPool]:
    size = PoolSize(spares, max_processes, lease_timeout_s, idle_s)
    async with asyncio.timeout(PATIENCE_S), DenoPool(factory, size, realms) as pool:
        yield pool


async def once(pool: DenoPool, owner: Scope | None = ACME, *, realm: bool = False) -> Process:
    """Run a program that ends in order, and return the process that served it."""
    async with pool.lease(owner, realm=realm) as sandbox:
        sandbox.finish()
    assert isinstance(sandbox, Process)
    return sandbox


class _Life:
    """Counts an executor's effects and crashes it at one of them, before it or just after."""

    def __init__(self, effects: int, after: bool) -> None:
        self.left = effects
        self._after = after

    async def effect(self, do: Callable[[], Awaitable[T]]) -> T:
        self.left -= 1
        if self.left > 0:
            return await do()
        if self.left == 0 and self._after:
            await do()
        raise RuntimeError("the executor died here")


class _MortalBus(MemoryBus):
    def __init__(self, bus: MemoryBus, life: _Life) -> None:
        super().__init__(bus.broker)
        self._life = life

    async def publish(self, message: Message) -> int:
        publish = partial(super().publish, message)
        return await self._life.effect(publish)


class _MortalTools(MemoryTools):
    def __init__(self, tools: MemoryTools, life: _Life) -> None:
        super().__init__()
        self._shared = tools
        self._life = life

    async def call(self, query: CallTool) -> ToolOutcome:
        return await self._life.effect(partial(self._shared.call, query))


def crashing(
    bus: MemoryBus, tools: MemoryTools, effects: int, after: bool
) -> tuple[Bus, Tools, Callable[[], bool]]:
    """Build the bus and the tools of an executor that crashes (RuntimeError) at its n-th append or
    call, before it or just `after` it; and a function that returns whether it did."""
    life = _Life(effects, after)
    return _MortalBus(bus, life), _MortalTools(tools, life), lambda: life.left <= 0
