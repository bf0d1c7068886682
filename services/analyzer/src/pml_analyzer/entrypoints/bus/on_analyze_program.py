"""Handler of the query `analyze`: analyse a program before its request is stored."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Final
from uuid import UUID

from pml_common.bus.errors import QueryFailed, Retryable
from pml_common.bus.port import Publisher
from pml_common.contracts import ids
from pml_common.contracts.analyzer import (
    AnalysisRejected,
    AnalyzeProgram,
    ExecutionAnalyzed,
    ProgramAnalysis,
)
from pml_common.contracts.gateway import ExecutionRequested

Analyze = Callable[[ExecutionRequested], Awaitable[Sequence[ExecutionAnalyzed | AnalysisRejected]]]

MOST_AT_ONCE: Final = 16
"""Queries beyond it are refused: their requests are stored, and wait in the queue."""


class ProgramAnalyzer:
    """Answers queries with analyses."""

    def __init__(self, analyze: Analyze, bus: Publisher) -> None:
        self._analyze = analyze
        self._bus = bus
        self._turns = asyncio.Semaphore(MOST_AT_ONCE)

    async def on_analyze_program(self, query: AnalyzeProgram) -> ProgramAnalysis:
        """Return the analysis. That of a program that can run is published before, for the
        registry: a gateway that caches the reply does not ask again. Raises QueryFailed
        `unavailable` while what the analysis needs is away, and beyond `MOST_AT_ONCE`."""
        if query.scope != query.requested.scope:
            raise QueryFailed("invalid", f"the request is of {query.requested.scope}")
        if self._turns.locked():
            raise QueryFailed("unavailable", f"{MOST_AT_ONCE} programs are being analysed")
        async with self._turns:
            try:
                return await self._analysis(query.requested)
            except Retryable as error:
                raise QueryFailed("unavailable", str(error)) from error

    async def _analysis(self, requested: ExecutionRequested) -> ProgramAnalysis:
        [message] = await self._analyze(requested)
        if isinstance(message, AnalysisRejected):
            return ProgramAnalysis(rejected=message)
        if not message.dry_run:
            event_id = _published_id(requested)
            await self._bus.publish(message.model_copy(update={"event_id": event_id}))
        return ProgramAnalysis(analyzed=message)


def _published_id(requested: ExecutionRequested) -> UUID:
    """Return an id of its own for an analysis that is published before its request is stored: the
    server must not take for its duplicate the one that the stored request is answered with."""
    digest = hashlib.sha256(requested.model_dump_json().encode()).hexdigest()
    return ids.effect_id(requested.event_id, f"program-analyzed/{digest}")
