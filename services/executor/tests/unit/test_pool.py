"""The pool of sandbox processes, with fake processes."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_executor.ports import SandboxUnavailable
from services.executor.tests.support.fakes import ACME, Factory, once, pool_of


async def test_spares_are_started_ahead_and_none_is_left_behind() -> None:
    factory = Factory()
    async with pool_of(factory) as pool:
        await eventually(lambda: factory.living == 2)
        async with pool.lease(ACME):
            assert len(factory.started) == 2
        await eventually(lambda: len(factory.started) == 3)
        assert factory.living == 2
    assert factory.living == 0


async def test_the_last_spare_is_replaced_at_once() -> None:
    factory = Factory()
    async with pool_of(factory, spares=1) as pool, pool.lease(ACME):
        await eventually(lambda: factory.living == 2)


async def test_no_process_is_leased_twice() -> None:
    factory = Factory()
    async with pool_of(factory) as pool:
        async with pool.lease(ACME) as one, pool.lease(ACME) as other, pool.lease(ACME) as third:
            assert len({id(one), id(other), id(third)}) == 3
        async with pool.lease(ACME) as fresh:
            assert fresh not in (one, other, third)


async def test_a_start_that_hangs_holds_up_nobody() -> None:
    factory = Factory("stuck", "stuck")
    async with pool_of(factory) as pool, pool.lease(ACME) as sandbox:
        assert sandbox in factory.started


async def test_a_spare_that_died_is_not_handed_out() -> None:
    factory = Factory()
    async with pool_of(factory) as pool:
        await eventually(lambda: factory.living == 2)
        for process in factory.started:
            process.alive = False
        async with pool.lease(ACME) as sandbox:
            assert sandbox in factory.started[2:]


@pytest.mark.parametrize(
    ("mood", "problem"), [("broken", "deno is not there"), ("buggy", "ValueError: a bug")]
)
async def test_a_failed_start_is_reported_and_retried(mood: str, problem: str) -> None:
    factory = Factory(mood, "stuck")
    async with pool_of(factory, spares=1) as pool:
        assert await eventually(pool.check) == problem
        factory.released.set()
        async with pool.lease(ACME):
            assert await pool.check() is None


async def test_there_are_never_more_processes_than_allowed() -> None:
    factory = Factory()
    async with (
        pool_of(factory, spares=3, max_processes=3, lease_timeout_s=0.05) as pool,
        AsyncExitStack() as leases,
    ):
        await eventually(lambda: factory.living == 3)  # spares are leased without a wait
        for _ in range(3):
            await leases.enter_async_context(pool.lease(ACME))
        with pytest.raises(SandboxUnavailable, match="every sandbox is in use"):
            await leases.enter_async_context(pool.lease(ACME))
        assert factory.living == 3


async def test_whoever_gives_up_waiting_leaves_the_process_to_the_next() -> None:
    factory = Factory("stuck")
    async with pool_of(factory, spares=0, max_processes=1) as pool:
        first = asyncio.create_task(once(pool))
        await eventually(lambda: not factory.moods)
        first.cancel()
        second = asyncio.create_task(once(pool))
        factory.released.set()
        await second
        assert len(factory.started) == 1
