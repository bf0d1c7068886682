"""Reuse of processes, each by its own scope."""

import asyncio
import contextlib
import random

import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_common.contracts.scope import Scope
from pml_executor.adapters.deno_pool import DenoPool
from services.executor.tests.support.fakes import (
    ACME,
    OTHER,
    THIRD,
    Factory,
    Process,
    once,
    pool_of,
)


async def test_a_process_whose_run_is_in_order_serves_its_scope_again() -> None:
    factory = Factory()
    async with pool_of(factory) as pool:
        served = {id(await once(pool)) for _ in range(5)}
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

    async with pool_of(factory, spares=1, max_processes=4) as pool:
        for _ in range(40):
            scopes = chance.choices([ACME, OTHER, THIRD], k=6)
            await asyncio.gather(*(run(pool, scope) for scope in scopes))
    assert len(owners) > 3
    assert all(len(scopes) == 1 for scopes in owners.values())


async def test_a_process_with_realms_serves_no_other_run() -> None:
    factory = Factory()
    async with pool_of(factory, spares=1, realms=lambda: True) as pool:
        shared = {id(await once(pool, realm=True)) for _ in range(3)}
        others = {id(await once(pool)) for _ in range(3)}
        alone = {id(await once(pool, None, realm=True)) for _ in range(3)}
        elsewhere = {id(await once(pool, OTHER, realm=True)) for _ in range(3)}
        assert [len(shared), len(others), len(alone), len(elsewhere)] == [1, 1, 3, 1]
        assert len(shared | others | alone | elsewhere) == 6
        for process in factory.started:
            assert (process.realms > 0) == (id(process) in shared | elsewhere)


async def test_without_realms_a_scope_has_one_kind_of_process() -> None:
    factory = Factory()
    async with pool_of(factory) as pool:
        served = {id(await once(pool, realm=realm)) for realm in (True, False, True)}
    assert len(served) == 1
    assert sum(process.realms for process in factory.started) == 0


async def test_realms_that_were_refused_are_not_leased_again() -> None:
    factory, usable = Factory(), [True]
    async with pool_of(factory, realms=lambda: usable[0]) as pool:
        first = await once(pool, realm=True)
        usable[0] = False
        assert await once(pool, realm=True) is not first


async def test_a_process_of_no_owner_serves_one_run() -> None:
    factory = Factory()
    async with pool_of(factory, spares=1) as pool:
        shared = await once(pool)
        alone = [await once(pool, None) for _ in range(3)]
        await eventually(lambda: sum(process.alive for process in alone) == 0)
        assert await once(pool) is shared
    assert len({id(process) for process in (shared, *alone)}) == 4
    assert factory.living == 0


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
        assert await once(pool) is not process
        await eventually(lambda: not process.alive)


async def test_the_longest_idle_of_another_scope_makes_room() -> None:
    factory = Factory()
    async with pool_of(factory, spares=0, max_processes=2) as pool:
        first, second = await once(pool, ACME), await once(pool, OTHER)
        third = await once(pool, THIRD)
        assert (first.alive, second.alive) == (False, True)
        assert await once(pool, OTHER) is second
        assert await once(pool, THIRD) is third


async def test_idle_processes_end_after_their_time() -> None:
    factory = Factory()
    async with pool_of(factory, spares=0, idle_s=0.01) as pool:
        process = await once(pool)
        await eventually(lambda: not process.alive)
        assert await once(pool) is not process


async def test_cold_processes_of_one_scope_give_their_place_to_spares_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pml_executor.adapters.deno_pool._RECLAIM_AFTER_S", 0.01)
    factory = Factory()
    async with pool_of(factory, spares=1, max_processes=1) as pool:
        process = await once(pool)
        await eventually(lambda: not process.alive and factory.living == 1)
        assert await once(pool, OTHER) is factory.started[1]


async def test_a_scope_waits_for_its_own_process_and_leaves_the_spares_to_others() -> None:
    factory = Factory()
    async with pool_of(factory, spares=1) as pool:
        async with pool.lease(ACME) as sandbox:
            assert isinstance(sandbox, Process)
            sandbox.renewable.clear()
            sandbox.finish()
        again = asyncio.create_task(once(pool))
        other = await once(pool, OTHER)
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
        again = asyncio.create_task(once(pool))
        await asyncio.sleep(0)
        sandbox.renewable.set()
        assert await again is not sandbox


async def test_a_busy_scope_starves_no_other() -> None:
    factory = Factory()
    order: list[Scope] = []

    async def run(pool: DenoPool, scope: Scope) -> None:
        order.append((await once(pool, scope)) and scope)

    async with pool_of(factory, spares=0, max_processes=1) as pool:
        async with pool.lease(ACME) as sandbox:
            waiting = [asyncio.create_task(run(pool, scope)) for scope in (OTHER, ACME, ACME)]
            await asyncio.sleep(0)
            sandbox.finish()
        await asyncio.gather(*waiting)
    assert order == [OTHER, ACME, ACME]


@pytest.mark.parametrize("turns", range(8))
async def test_a_lease_given_up_at_any_moment_takes_no_place_with_it(turns: int) -> None:
    factory = Factory("stuck")
    async with pool_of(factory, spares=0, max_processes=1) as pool:
        given_up = asyncio.create_task(once(pool))
        await eventually(lambda: not factory.moods)
        factory.released.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        await once(pool, OTHER)
        assert factory.living <= 1
