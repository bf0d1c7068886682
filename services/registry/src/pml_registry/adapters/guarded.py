"""Bounded waits for an embedder and an index that may be away, each behind a circuit breaker."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from typing_extensions import override

from pml_common.contracts.scope import Scope
from pml_registry.domain.circuit import Circuit
from pml_registry.domain.ranking import Kind
from pml_registry.ports.vectors import (
    Embedded,
    Embedder,
    EmbedderUnavailable,
    IndexUnavailable,
    Near,
    Vector,
    VectorSearch,
)

log = logging.getLogger(__name__)

T = TypeVar("T")


class Guard:
    """Makes calls with a bounded wait; after failures in a row it refuses them at once, but for one
    from time to time. Raises `error`."""

    def __init__(
        self, name: str, within_s: float, error: type[EmbedderUnavailable | IndexUnavailable]
    ) -> None:
        self._name, self._within_s, self._error = name, within_s, error
        self._circuit = Circuit()

    async def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Make a call."""
        clock = asyncio.get_running_loop().time
        if not self._circuit.allows(clock()):
            raise self._error(f"{self._name} does not answer")
        self._circuit = self._circuit.tried(clock(), self._within_s)
        try:
            async with asyncio.timeout(self._within_s):
                found = await work()
        except TimeoutError as late:
            self._fail(clock(), f"no answer within {self._within_s:g} s")
            raise self._error(f"{self._name}: no answer within {self._within_s:g} s") from late
        except self._error as outage:
            self._fail(clock(), str(outage))
            raise
        if self._circuit.is_open:
            log.info("%s answers again", self._name)
        self._circuit = Circuit()
        return found

    async def check(self) -> str | None:
        """Check health: the problem while calls are refused."""
        return f"{self._name} does not answer" if self._circuit.is_open else None

    def _fail(self, now: float, problem: str) -> None:
        was_open = self._circuit.is_open
        self._circuit = self._circuit.failed(now)
        if self._circuit.is_open and not was_open:
            log.warning("%s: discovery by words alone: %s", self._name, problem)


class GuardedEmbedder(Embedder):
    """An embedder behind a guard."""

    def __init__(self, embedder: Embedder, guard: Guard) -> None:
        self._embedder, self._guard = embedder, guard

    @override
    async def model(self) -> str:
        return await self._guard.call(self._embedder.model)

    @override
    async def embed(self, texts: Sequence[str]) -> Embedded:
        return await self._guard.call(lambda: self._embedder.embed(texts))


class GuardedSearch(VectorSearch):
    """An index's search behind a guard, and only where the index has all vectors of the model."""

    def __init__(
        self, index: VectorSearch, guard: Guard, is_complete: Callable[[str], Awaitable[bool]]
    ) -> None:
        self._index, self._guard, self._is_complete = index, guard, is_complete

    @override
    async def nearest(
        self, scope: Scope, kind: Kind, model: str, vector: Vector, limit: int
    ) -> Sequence[Near]:
        if not await self._is_complete(model):
            raise IndexUnavailable(f"the vector index does not have all vectors of {model} yet")
        return await self._guard.call(
            lambda: self._index.nearest(scope, kind, model, vector, limit)
        )
