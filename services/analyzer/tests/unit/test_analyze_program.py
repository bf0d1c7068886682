"""Queries for analyses: what is published for them, and when they are refused."""

import asyncio
from collections.abc import Sequence

import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_analyzer.entrypoints.bus.on_analyze_program import MOST_AT_ONCE, ProgramAnalyzer
from pml_common.bus.errors import QueryFailed, Retryable
from pml_common.contracts.analyzer import (
    AnalysisRejected,
    AnalyzeProgram,
    ExecutionAnalyzed,
    ProgramAnalysis,
)
from pml_common.contracts.gateway import ExecutionRequested
from pml_common.contracts.scope import Scope
from pml_common.testing.memory_bus import MemoryBus
from services.analyzer.tests.unit.test_on_execution_requested import SCOPE, requested

ELSEWHERE = Scope(org="acme", project="elsewhere")


class Engine:
    """Analyses nothing before `go` is set; then it is away."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.waiting = 0

    async def analyze(
        self, request: ExecutionRequested
    ) -> Sequence[ExecutionAnalyzed | AnalysisRejected]:
        """Wait for `go` and raise Retryable."""
        self.waiting += 1
        await self.go.wait()
        raise Retryable("the registry is away")


async def test_so_many_at_once_and_unavailable_while_something_is_away() -> None:
    engine = Engine()
    analyses = ProgramAnalyzer(engine.analyze, MemoryBus())
    query = AnalyzeProgram(scope=SCOPE, requested=requested("return 1;"))

    async def ask() -> ProgramAnalysis:
        return await analyses.on_analyze_program(query)

    asked = [asyncio.create_task(ask()) for _ in range(MOST_AT_ONCE)]
    await eventually(lambda: engine.waiting == MOST_AT_ONCE)
    with pytest.raises(QueryFailed, match="programs are being analysed") as failed:
        await ask()
    assert failed.value.code == "unavailable"
    engine.go.set()
    for task in asked:
        with pytest.raises(QueryFailed, match="the registry is away") as failed:
            await task
        assert failed.value.code == "unavailable"


async def test_a_request_of_another_scope_is_invalid() -> None:
    analyses = ProgramAnalyzer(Engine().analyze, MemoryBus())
    query = AnalyzeProgram(scope=ELSEWHERE, requested=requested("return 1;"))
    with pytest.raises(QueryFailed, match=r"of acme\.") as failed:
        await analyses.on_analyze_program(query)
    assert failed.value.code == "invalid"
