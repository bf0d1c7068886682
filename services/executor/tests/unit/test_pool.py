"""The pool of sandbox processes, on processes that are none."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from pml_executor.adapters.deno_pool import DenoPool, PoolSize
from pml_executor.adapters.memory_sandbox import MemorySandbox
from pml_executor.ports import SandboxUnavailable
from pml_local.testing import eventually


class Process(MemorySandbox):
    def __init__(self) -> None:
        super().__init__({})
        self.alive = True

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
    factory: Factory, spares: int = 2, most: int = 10, patience_s: float = 5.0
) -> AsyncGenerator[DenoPool]:
    async with asyncio.timeout(10), DenoPool(factory, PoolSize(spares, most, patience_s)) as pool:
        yield pool


async def test_spares_are_started_ahead_and_none_is_left_behind() -> None:
    factory = Factory()
    async with pool_of(factory) as pool:
        await eventually(lambda: factory.living == 2)
        async with pool.lease():
            assert len(factory.started) == 2
        await eventually(lambda: len(factory.started) == 3)
        assert factory.living == 2
    assert factory.living == 0


async def test_the_last_spare_is_replaced_at_once() -> None:
    factory = Factory()
    async with pool_of(factory, spares=1) as pool, pool.lease():
        await eventually(lambda: factory.living == 2)


async def test_no_process_is_leased_twice() -> None:
    factory = Factory()
    async with pool_of(factory) as pool:
        async with pool.lease() as one, pool.lease() as other, pool.lease() as third:
            assert len({id(one), id(other), id(third)}) == 3
        async with pool.lease() as fresh:
            assert fresh not in (one, other, third)


async def test_a_start_that_hangs_holds_up_nobody() -> None:
    factory = Factory("stuck", "stuck")
    async with pool_of(factory) as pool, pool.lease() as sandbox:
        assert sandbox in factory.started


async def test_a_spare_that_died_is_not_handed_out() -> None:
    factory = Factory()
    async with pool_of(factory) as pool:
        await eventually(lambda: factory.living == 2)
        for process in factory.started:
            process.alive = False
        async with pool.lease() as sandbox:
            assert sandbox in factory.started[2:]


async def test_a_failed_start_is_reported_and_tried_again() -> None:
    factory = Factory("broken", "buggy")
    async with pool_of(factory, spares=1) as pool:
        assert await eventually(pool.check) == "deno is not there"
        async with pool.lease():
            assert await pool.check() is None


async def test_there_are_never_more_processes_than_allowed() -> None:
    factory = Factory()
    async with pool_of(factory, most=3, patience_s=0.05) as pool, AsyncExitStack() as leases:
        for _ in range(3):
            await leases.enter_async_context(pool.lease())
        with pytest.raises(SandboxUnavailable, match="every sandbox is in use"):
            await leases.enter_async_context(pool.lease())
        assert factory.living == 3


async def test_whoever_gives_up_waiting_leaves_the_process_to_the_next() -> None:
    factory = Factory("stuck")
    async with pool_of(factory, spares=0, most=1) as pool:
        first = asyncio.create_task(_once(pool))
        await eventually(lambda: not factory.moods)
        first.cancel()
        second = asyncio.create_task(_once(pool))
        factory.released.set()
        await second
        assert len(factory.started) == 1


async def _once(pool: DenoPool) -> None:
    async with pool.lease():
        pass
