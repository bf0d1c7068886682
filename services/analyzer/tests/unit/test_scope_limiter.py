"""Limits on the share of one scope."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from pml_analyzer.adapters.scope_limiter import ScopeLimiter
from pml_analyzer.ports import ScopeBusy
from pml_common.contracts.scope import Scope

ACME, RIVAL = Scope(org="acme", project="webapp"), Scope(org="rival", project="webapp")
FOR_EVER = 3600.0


@asynccontextmanager
async def waiting(turns: ScopeLimiter, scope: Scope, number: int) -> AsyncGenerator[list[int]]:
    """Run so many that want a slot; yields those that got one, in order."""
    served: list[int] = []

    async def want(one: int) -> None:
        async with turns.of(scope):
            served.append(one)

    wanting = [asyncio.create_task(want(one)) for one in range(number)]
    await _settled()
    yield served
    for one in wanting:
        one.cancel()
    await asyncio.gather(*wanting, return_exceptions=True)


async def _settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_scope_waits_for_itself_and_nobody_for_it() -> None:
    turns = ScopeLimiter(per_scope=1)
    async with turns.of(ACME), waiting(turns, ACME, 2) as same, waiting(turns, RIVAL, 2) as other:
        assert same == []
        assert other == [0, 1]


async def test_those_of_a_scope_get_their_turns_in_order() -> None:
    turns = ScopeLimiter(per_scope=1)
    async with AsyncExitStack() as held:
        await held.enter_async_context(turns.of(ACME))
        async with waiting(turns, ACME, 3) as served:
            await held.aclose()
            await _settled()
            assert served == [0, 1, 2]


async def test_a_scope_may_have_several_at_a_time() -> None:
    turns = ScopeLimiter(per_scope=2)
    async with turns.of(ACME), turns.of(ACME), waiting(turns, ACME, 1) as third:
        assert third == []


async def test_behind_long_work_only_a_line_may_wait() -> None:
    turns = ScopeLimiter(per_scope=1, max_waiting=2, grace_s=0)
    async with turns.of(ACME), waiting(turns, ACME, 2):
        with pytest.raises(ScopeBusy, match="long work"):
            async with turns.of(ACME):
                pass
        async with turns.of(RIVAL):
            pass


async def test_behind_short_work_more_than_a_line_may_wait() -> None:
    turns = ScopeLimiter(per_scope=1, max_waiting=1, grace_s=FOR_EVER)
    async with AsyncExitStack() as held:
        await held.enter_async_context(turns.of(ACME))
        async with waiting(turns, ACME, 5) as served:
            await held.aclose()
            await _settled()
            assert served == [0, 1, 2, 3, 4]


async def test_nothing_is_kept_of_a_scope_that_wants_nothing() -> None:
    turns = ScopeLimiter(per_scope=1, max_waiting=0, grace_s=0)
    async with turns.of(ACME):
        with pytest.raises(ScopeBusy):
            async with turns.of(ACME):
                pass
        assert list(turns.scopes) == [ACME]
    assert list(turns.scopes) == []
