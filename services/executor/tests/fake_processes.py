"""A pool of processes that are none."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from pml_common.contracts.scope import Scope
from pml_executor.adapters.deno_pool import DenoPool, PoolSize
from pml_executor.adapters.memory_sandbox import MemorySandbox
from pml_executor.ports import SandboxUnavailable

ACME = Scope(org="acme", project="webapp")
OTHER = Scope(org="acme", project="shop")
THIRD = Scope(org="beta", project="webapp")


class Process(MemorySandbox):
    """`fit` is whether it can be renewed, which takes until `renewable`."""

    def __init__(self) -> None:
        super().__init__({})
        self.alive = True
        self.finished = False
        self.fit = True
        self.renewable = asyncio.Event()
        self.renewable.set()

    def finish(self) -> None:
        self.finished = True

    def kill(self) -> None:
        super().kill()
        self.finished = False

    async def renew(self) -> bool:
        await self.renewable.wait()
        return self.fit

    async def close(self) -> None:
        await super().close()
        self.alive = False


class Factory:
    """Starts processes, or does not: `moods` tells what each start does, in order."""

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
    most: int = 10,
    patience_s: float = 5.0,
    idle_s: float = 60.0,
) -> AsyncGenerator[DenoPool]:
    size = PoolSize(spares, most, patience_s, idle_s)
    async with asyncio.timeout(10), DenoPool(factory, size) as pool:
        yield pool


async def once(pool: DenoPool, owner: Scope | None = ACME) -> Process:
    """The process that served a run in order."""
    async with pool.lease(owner) as sandbox:
        sandbox.finish()
    assert isinstance(sandbox, Process)
    return sandbox
