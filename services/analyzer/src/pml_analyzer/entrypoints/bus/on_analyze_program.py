"""Handler of the query `analyze`: analyse a program before its request is stored."""

from collections.abc import Awaitable, Callable, Sequence

from pml_common.bus.errors import QueryFailed, Retryable
from pml_common.bus.port import Publisher
from pml_common.contracts.analyzer import (
    AnalysisRejected,
    AnalyzeProgram,
    ExecutionAnalyzed,
    ProgramAnalysis,
)
from pml_common.contracts.gateway import ExecutionRequested

Analyze = Callable[[ExecutionRequested], Awaitable[Sequence[ExecutionAnalyzed | AnalysisRejected]]]


async def on_analyze_program(
    query: AnalyzeProgram, analyze: Analyze, bus: Publisher
) -> ProgramAnalysis:
    """Return the analysis. That of a program that can run is published before, for the registry: a
    gateway that caches the reply does not ask again. Raises QueryFailed `unavailable` while what
    the analysis needs is away."""
    try:
        [message] = await analyze(query.requested)
        if isinstance(message, AnalysisRejected):
            return ProgramAnalysis(rejected=message)
        if not message.dry_run:
            await bus.publish(message)
    except Retryable as error:
        raise QueryFailed("unavailable", str(error)) from error
    return ProgramAnalysis(analyzed=message)
