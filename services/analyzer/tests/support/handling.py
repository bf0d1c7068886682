"""Requests handled by the analyzer's handler, without processes."""

from collections.abc import Sequence

from pml_analysis.text.limits import DEFAULT_LIMITS, Limits
from pml_analyzer.adapters.inline_engine import InlineEngine
from pml_analyzer.application.analysis_cache import AnalysisCache
from pml_analyzer.application.compile_check import CompileCheck
from pml_analyzer.entrypoints.bus.on_execution_requested import on_execution_requested
from pml_analyzer.ports import Capabilities, Catalog, Compiler
from pml_checker.type_check import TypeCheck
from pml_common.contracts.base import Message
from pml_common.contracts.gateway import ExecutionRequested
from services.analyzer.tests.support.memory import MemoryCompiler


async def handled(
    request: ExecutionRequested,
    catalog: Catalog,
    capabilities: Capabilities,
    limits: Limits = DEFAULT_LIMITS,
    types: TypeCheck | None = None,
    compiler: Compiler | None = None,
) -> Sequence[Message]:
    """Return the events that a request leads to; nothing is cached."""
    return await on_execution_requested(
        request,
        catalog,
        capabilities,
        limits,
        analyses=AnalysisCache(InlineEngine(), max_entries=0),
        compiles=CompileCheck(compiler or MemoryCompiler()),
        types=types,
    )
