"""Handler of `execution-requested`: analyse the program of an accepted workflow."""

import asyncio
from collections.abc import Sequence

from pml_analysis.analysis import NO_CAPABILITIES, Analysis, Rejection
from pml_analysis.capability_types import typed_capabilities
from pml_analysis.text.limits import Limits
from pml_analyzer.application.analysis_cache import AnalysisCache
from pml_analyzer.application.compile_check import CompileCheck
from pml_analyzer.application.library import library_for
from pml_analyzer.ports import Capabilities, Catalog
from pml_checker.type_check import TypeCheck
from pml_common.contracts import ids
from pml_common.contracts.analyzer import AnalysisRejected, ExecutionAnalyzed
from pml_common.contracts.capability import CapabilityIdentity
from pml_common.contracts.gateway import ExecutionRequested


async def on_execution_requested(
    request: ExecutionRequested,
    catalog: Catalog,
    capabilities: Capabilities,
    limits: Limits,
    analyses: AnalysisCache,
    compiles: CompileCheck,
    types: TypeCheck | None = None,
) -> Sequence[ExecutionAnalyzed | AnalysisRejected]:
    """Analyse one program; equal programs, tools, capabilities and policies give equal events."""
    scope, library, engine = request.scope, NO_CAPABILITIES, analyses.engine
    tools = await catalog.tools(scope)
    outcome = await analyses.of(request, tools, library, limits)
    if isinstance(outcome, Rejection) and outcome.missing_capabilities:
        names = outcome.missing_capabilities
        library = await library_for(scope, request.principal, names, capabilities, limits, engine)
        outcome = await analyses.of(request, tools, library, limits)
    if isinstance(outcome, Rejection) and outcome.missing_tools:
        # The author may use a tool that is newer than the cached catalog.
        tools = await catalog.refresh(scope)
        outcome = await analyses.of(request, tools, library, limits)
    outcome = await compiles.of(scope, outcome)
    if types is not None:
        called = await asyncio.to_thread(typed_capabilities, library.described(), tools)
        outcome = await types.of(outcome, tools, called)
    return [
        _rejected(request, outcome)
        if isinstance(outcome, Rejection)
        else _analyzed(request, outcome)
    ]


def _analyzed(request: ExecutionRequested, analysis: Analysis) -> ExecutionAnalyzed:
    is_changed = analysis.code != request.code
    return ExecutionAnalyzed(
        event_id=ids.effect_id(request.event_id, "execution-analyzed"),
        scope=request.scope,
        workflow_id=request.workflow_id,
        principal=request.principal,
        capability=CapabilityIdentity(
            capability_id=ids.capability_id(request.scope, analysis.code_hash),
            code_hash=analysis.code_hash,
            name=request.name,
        ),
        intent=request.intent,
        code=analysis.code.strip("\r\n") if is_changed else request.code,
        submitted_code=request.code if is_changed else None,
        notices=analysis.notices,
        reads_catalog=analysis.reads_catalog,
        instrumented=analysis.instrumented,
        insertions=analysis.insertions,
        structure=analysis.structure,
        dynamic_calls=analysis.dynamic_calls,
        decision=analysis.decision,
        capabilities=analysis.capabilities,
        injected=analysis.injected,
        parameters_schema=analysis.parameters_schema,
        diagnostics=analysis.diagnostics,
        dry_run=request.dry_run is not None,
        source=request.source,
    )


def _rejected(request: ExecutionRequested, rejection: Rejection) -> AnalysisRejected:
    return AnalysisRejected(
        event_id=ids.effect_id(request.event_id, "analysis-rejected"),
        scope=request.scope,
        workflow_id=request.workflow_id,
        kind=rejection.kind,
        diagnostics=rejection.diagnostics,
    )
