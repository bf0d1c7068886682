"""Composition root of the analyzer: message → handler."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

from pml_analysis.analysis import analyze
from pml_analysis.text.limits import Limits
from pml_analyzer.adapters.bus_capabilities import BusCapabilities
from pml_analyzer.adapters.bus_catalog import BusCatalog
from pml_analyzer.adapters.deno_compiler import deno_compiler
from pml_analyzer.adapters.process_engine import process_engine
from pml_analyzer.adapters.worker_pool import WorkerLimits
from pml_analyzer.application.analysis_cache import AnalysisCache
from pml_analyzer.application.compile_check import CompileCheck
from pml_analyzer.entrypoints.bus.on_analyze_program import ProgramAnalyzer
from pml_analyzer.entrypoints.bus.on_execution_requested import on_execution_requested
from pml_analyzer.entrypoints.bus.on_registry_changes import (
    on_capability_changed,
    on_catalog_changed,
)
from pml_analyzer.settings import AnalyzerSettings
from pml_checker.checker_process import CheckerCommand
from pml_checker.deno_checker import CheckerLimits, deno_checker
from pml_checker.type_check import TypeCheck
from pml_common.bus.port import Bus
from pml_common.contracts import catalog
from pml_common.contracts.decision import Policy
from pml_common.health import Checks

_MOST_WAITING: Final = 4
"""Programs that wait for the type checker at a time; a warning is worth no longer delay."""


@asynccontextmanager
async def serve(settings: AnalyzerSettings, bus: Bus) -> AsyncGenerator[Checks]:
    """Run the analyzer until the context exits."""
    analyze("return 1;", tools=(), policy=Policy())  # loads the grammar before the first caller
    max_age_s = settings.analyzer_catalog_max_age_s
    tools = BusCatalog(bus, max_age_s=max_age_s)
    capabilities = BusCapabilities(bus, max_age_s=max_age_s)
    await bus.listen(catalog.CATALOG_CHANGED, partial(on_catalog_changed, catalog=tools))
    await bus.listen(
        catalog.CAPABILITY_CHANGED, partial(on_capability_changed, capabilities=capabilities)
    )
    shares = WorkerLimits(
        deadline_s=settings.analyzer_deadline_s,
        processes=settings.analyzer_processes,
        per_scope=settings.analyzer_processes_per_scope,
        spares=settings.analyzer_spares,
    )
    async with (
        process_engine(shares) as engine,
        deno_compiler(settings.analyzer_deno, shares) as compiler,
        _type_check(settings) as (types, checks),
    ):
        analyze_request = partial(
            on_execution_requested,
            catalog=tools,
            capabilities=capabilities,
            limits=Limits(source_bytes=settings.analyzer_source_limit),
            analyses=AnalysisCache(engine),
            compiles=CompileCheck(compiler),
            types=types,
        )
        await bus.consume(catalog.ANALYZER_ON_EXECUTION_REQUESTED, analyze_request)
        await bus.serve(catalog.ANALYZE, ProgramAnalyzer(analyze_request, bus).on_analyze_program)
        yield {"analysis": engine.health, "compiler": compiler.health, **checks}


@asynccontextmanager
async def _type_check(
    settings: AnalyzerSettings,
) -> AsyncGenerator[tuple[TypeCheck | None, Checks]]:
    """Run the configured type check, if any, and yield it with its health."""
    if settings.analyzer_type_check == "off":
        yield None, {}
        return
    command = CheckerCommand(settings.analyzer_deno, settings.analyzer_type_check_heap_mib)
    reject = settings.analyzer_type_check == "reject"
    limits = CheckerLimits(
        patience_s=settings.analyzer_type_check_timeout_s,
        most_waiting=None if reject else _MOST_WAITING,
        is_warm=settings.analyzer_spares > 0,
    )
    async with deno_checker(command, limits) as checker:
        yield TypeCheck(checker, reject), {"type checker": checker.health}
