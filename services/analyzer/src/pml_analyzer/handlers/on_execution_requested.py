"""A workflow was accepted: read its program and say what it would do."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from pml_analyzer.domain.analysis import Analysis, Rejection, analyze
from pml_analyzer.domain.readable import Limits
from pml_analyzer.ports import Catalog
from pml_common.contracts import ids
from pml_common.contracts.analyzer import AnalysisRejected, ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.capability import CapabilityIdentity
from pml_common.contracts.gateway import ExecutionRequested
from pml_common.contracts.tool import ToolDefinition

_INLINE: Final = 8 * 1024
"""Characters whose analysis (about 10 ms) may hold up the event loop; longer ones get a thread."""


async def on_execution_requested(
    request: ExecutionRequested, catalog: Catalog, limits: Limits
) -> Sequence[Message]:
    """Analyse one program; the same program, tools and policy give equal events every time."""
    outcome = await _analyse(request, await catalog.tools(request.scope), limits)
    if isinstance(outcome, Rejection) and outcome.missing_tools:
        # The author may know of a tool that our copy of the catalogue is too old to hold.
        outcome = await _analyse(request, await catalog.reread(request.scope), limits)
    return [
        _rejected(request, outcome)
        if isinstance(outcome, Rejection)
        else _analyzed(request, outcome)
    ]


async def _analyse(
    request: ExecutionRequested, tools: Sequence[ToolDefinition], limits: Limits
) -> Analysis | Rejection:
    work = partial(analyze, request.code, tools=tools, policy=request.policy, limits=limits)
    return work() if len(request.code) <= _INLINE else await asyncio.to_thread(work)


def _analyzed(request: ExecutionRequested, analysis: Analysis) -> ExecutionAnalyzed:
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
        code=request.code,
        instrumented=analysis.instrumented,
        insertions=analysis.insertions,
        structure=analysis.structure,
        dynamic_calls=analysis.dynamic_calls,
        decision=analysis.decision,
        parameters_schema=analysis.parameters_schema,
        diagnostics=analysis.diagnostics,
    )


def _rejected(request: ExecutionRequested, rejection: Rejection) -> AnalysisRejected:
    return AnalysisRejected(
        event_id=ids.effect_id(request.event_id, "analysis-rejected"),
        scope=request.scope,
        workflow_id=request.workflow_id,
        kind=rejection.kind,
        diagnostics=rejection.diagnostics,
    )
