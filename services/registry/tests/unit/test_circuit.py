"""The circuit breaker, and calls behind it."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from libs.pml_local.tests.support.harness import eventually
from pml_registry.adapters.background_embedder import BackgroundEmbedder
from pml_registry.adapters.guarded import Guard, GuardedEmbedder
from pml_registry.domain.circuit import FIRST_WAIT_S, LONGEST_WAIT_S, OPENS_AFTER, Circuit
from pml_registry.ports.vectors import EmbedderUnavailable, IndexUnavailable
from services.registry.tests.support.hash_embedder import HashEmbedder


def failing(times: int) -> Circuit:
    """A circuit after failures at time 0."""
    circuit = Circuit()
    for _ in range(times):
        circuit = circuit.failed(0.0)
    return circuit


def test_a_failure_or_two_are_needed_to_open_it() -> None:
    assert Circuit().allows(0.0)
    assert failing(OPENS_AFTER - 1).allows(0.0)
    assert not failing(OPENS_AFTER).allows(0.0)


def test_of_an_open_one_there_is_one_attempt_at_a_time() -> None:
    circuit = failing(OPENS_AFTER)
    assert circuit.allows(FIRST_WAIT_S)
    trying = circuit.tried(FIRST_WAIT_S, 2.0)
    assert not trying.allows(FIRST_WAIT_S + 1.0)
    assert trying.allows(FIRST_WAIT_S + 2.0)
    assert Circuit().tried(0.0, 2.0) == Circuit()


@given(st.integers(OPENS_AFTER, 10_000))
def test_waits_grow_up_to_the_longest(failures: int) -> None:
    before, after = Circuit(failures - 1).failed(0.0), Circuit(failures).failed(0.0)
    assert FIRST_WAIT_S <= before.retry_at <= after.retry_at <= LONGEST_WAIT_S


class Server:
    """Answers, refuses or hangs; counts calls."""

    def __init__(self) -> None:
        self.is_away = False
        self.calls = 0

    async def call(self) -> str:
        self.calls += 1
        if self.is_away:
            raise IndexUnavailable("refused")
        return "answer"


async def test_a_server_that_is_away_is_not_asked_again_at_once() -> None:
    server, guard = Server(), Guard("the index", 5.0, IndexUnavailable)
    assert await guard.call(server.call) == "answer"
    server.is_away = True
    for _ in range(OPENS_AFTER):
        with pytest.raises(IndexUnavailable, match="refused"):
            await guard.call(server.call)
    with pytest.raises(IndexUnavailable, match="does not answer"):
        await guard.call(server.call)
    assert server.calls == 1 + OPENS_AFTER
    assert await guard.check() == "the index does not answer"


async def test_a_wait_is_bounded_and_counts_as_a_failure() -> None:
    guard, released = Guard("the index", 0.02, IndexUnavailable), asyncio.Event()
    for _ in range(OPENS_AFTER):
        with pytest.raises(IndexUnavailable, match=r"no answer within 0\.02 s"):
            await guard.call(released.wait)
    assert await guard.check() is not None


async def test_a_server_that_is_back_is_asked_again() -> None:
    server, guard = Server(), Guard("the index", 5.0, IndexUnavailable)
    server.is_away = True
    for _ in range(OPENS_AFTER):
        with pytest.raises(IndexUnavailable):
            await guard.call(server.call)
    server.is_away = False

    async def answers() -> bool:
        try:
            return await guard.call(server.call) == "answer"
        except IndexUnavailable:
            return False

    await eventually(answers)
    assert await guard.check() is None
    assert server.calls == OPENS_AFTER + 1


async def test_an_embedder_behind_a_guard_embeds() -> None:
    background = BackgroundEmbedder(HashEmbedder.model_name, HashEmbedder)
    guarded = GuardedEmbedder(background, Guard("it", 60.0, EmbedderUnavailable))
    assert await guarded.model() == "hash"
    assert await guarded.embed(["text"]) == await background.embed(["text"])
    await background.aclose()
