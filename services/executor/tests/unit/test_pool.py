"""The pool of sandbox processes, on processes that are none."""

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from pml_common.contracts.scope import Scope
from pml_executor.adapters.deno_pool import DenoPool, PoolSize
from pml_executor.adapters.memory_sandbox import MemorySandbox
from pml_executor.ports import SandboxUnavailable
from pml_local.testing import eventually

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


async def test_a_failed_start_is_reported_and_tried_again() -> None:
    factory = Factory("broken", "buggy")
    async with pool_of(factory, spares=1) as pool:
        assert await eventually(pool.check) == "deno is not there"
        async with pool.lease(ACME):
            assert await pool.check() is None


async def test_there_are_never_more_processes_than_allowed() -> None:
    factory = Factory()
    async with pool_of(factory, most=3, patience_s=0.05) as pool, AsyncExitStack() as leases:
        for _ in range(3):
            await leases.enter_async_context(pool.lease(ACME))
        with pytest.raises(SandboxUnavailable, match="every sandbox is in use"):
            await leases.enter_async_context(pool.lease(ACME))
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


async def _once(pool: DenoPool, scope: Scope = ACME) -> Process:
    """The process that served a run in order."""
    async with pool.lease(scope) as sandbox:
        sandbox.finish()
    assert isinstance(sandbox, Process)
    return sandbox


async def test_a_process_whose_run_is_in_order_serves_its_scope_again() -> None:
    factory = Factory()
    async with pool_of(factory) as pool:
        served = {id(await _once(pool)) for _ in range(5)}
    assert len(served) == 1
    assert factory.living == 0


async def test_no_process_ever_serves_two_scopes() -> None:
    factory = Factory()
    owners: dict[int, set[Scope]] = {}
    chance = random.Random(7)  # noqa: S311 - of which scope comes next

    async def run(pool: DenoPool, scope: Scope) -> None:
        async with pool.lease(scope) as sandbox:
            owners.setdefault(id(sandbox), set()).add(scope)
            await asyncio.sleep(0)
            if chance.random() < 0.8:
                sandbox.finish()

    async with pool_of(factory, spares=1, most=4) as pool:
        for _ in range(40):
            scopes = chance.choices([ACME, OTHER, THIRD], k=6)
            await asyncio.gather(*(run(pool, scope) for scope in scopes))
    assert len(owners) > 3
    assert all(len(scopes) == 1 for scopes in owners.values())


@pytest.mark.parametrize("how", ["killed", "unfit", "dead", "in error"])
async def test_what_is_not_in_order_is_never_used_again(how: str) -> None:
    factory = Factory()
    async with pool_of(factory, spares=0) as pool:
        with contextlib.suppress(RuntimeError):
            async with pool.lease(ACME) as sandbox:
                factory.started[0].fit = how != "unfit"
                sandbox.finish()
                if how == "killed":
                    sandbox.kill()
                if how == "in error":
                    raise RuntimeError("after its end, a call failed")
        (process,) = factory.started
        if how == "dead":
            process.alive = False
        assert await _once(pool) is not process
        await eventually(lambda: not process.alive)


async def test_the_longest_idle_of_another_scope_makes_room() -> None:
    factory = Factory()
    async with pool_of(factory, spares=0, most=2) as pool:
        first, second = await _once(pool, ACME), await _once(pool, OTHER)
        third = await _once(pool, THIRD)
        assert (first.alive, second.alive) == (False, True)
        assert await _once(pool, OTHER) is second
        assert await _once(pool, THIRD) is third


async def test_idle_processes_end_after_their_time() -> None:
    factory = Factory()
    async with pool_of(factory, spares=0, idle_s=0.01) as pool:
        process = await _once(pool)
        await eventually(lambda: not process.alive)
        assert await _once(pool) is not process


async def test_cold_processes_of_one_scope_give_their_place_to_spares_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pml_executor.adapters.deno_pool._COLD_S", 0.01)
    factory = Factory()
    async with pool_of(factory, spares=1, most=1) as pool:
        process = await _once(pool)
        await eventually(lambda: not process.alive and factory.living == 1)
        assert await _once(pool, OTHER) is factory.started[1]


async def test_a_scope_waits_for_its_own_process_and_leaves_the_spares_to_others() -> None:
    factory = Factory()
    async with pool_of(factory, spares=1) as pool:
        async with pool.lease(ACME) as sandbox:
            assert isinstance(sandbox, Process)
            sandbox.renewable.clear()
            sandbox.finish()
        again = asyncio.create_task(_once(pool))
        other = await _once(pool, OTHER)
        assert other is not sandbox
        assert not again.done()
        sandbox.renewable.set()
        assert await again is sandbox


async def test_a_renewal_that_fails_leaves_whoever_waited_to_a_spare() -> None:
    factory = Factory()
    async with pool_of(factory, spares=1) as pool:
        async with pool.lease(ACME) as sandbox:
            assert isinstance(sandbox, Process)
            sandbox.renewable.clear()
            sandbox.fit = False
            sandbox.finish()
        again = asyncio.create_task(_once(pool))
        await asyncio.sleep(0)
        sandbox.renewable.set()
        assert await again is not sandbox


async def test_a_busy_scope_starves_no_other() -> None:
    factory = Factory()
    order: list[Scope] = []

    async def run(pool: DenoPool, scope: Scope) -> None:
        order.append((await _once(pool, scope)) and scope)

    async with pool_of(factory, spares=0, most=1) as pool:
        async with pool.lease(ACME) as sandbox:
            waiting = [asyncio.create_task(run(pool, scope)) for scope in (OTHER, ACME, ACME)]
            await asyncio.sleep(0)
            sandbox.finish()
        await asyncio.gather(*waiting)
    assert order == [OTHER, ACME, ACME]


@pytest.mark.parametrize("turns", range(8))
async def test_a_lease_given_up_at_any_moment_takes_no_place_with_it(turns: int) -> None:
    factory = Factory("stuck")
    async with pool_of(factory, spares=0, most=1) as pool:
        given_up = asyncio.create_task(_once(pool))
        await eventually(lambda: not factory.moods)
        factory.released.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        await _once(pool, OTHER)
        assert factory.living <= 1
