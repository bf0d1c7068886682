"""The engine in the calling process: for short programs, and for tests."""

from collections.abc import Sequence

from typing_extensions import override

from pml_analysis.analysis import Analysis, Rejection, analyze
from pml_analysis.capability_reading import read_capability
from pml_analysis.decision.capabilities import Capability, Library
from pml_analysis.text.limits import Limits
from pml_analyzer.ports import Engine
from pml_common.contracts.capability import CapabilityDescription
from pml_common.contracts.gateway import ExecutionRequested
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition


class InlineEngine(Engine):
    """Analyses programs in the event loop, which it blocks meanwhile."""

    @override
    async def analyze(
        self,
        request: ExecutionRequested,
        tools: Sequence[ToolDefinition],
        library: Library,
        limits: Limits,
    ) -> Analysis | Rejection:
        return analyzed(request, tools, library, limits)

    @override
    async def read_capability(
        self, scope: Scope, about: CapabilityDescription, limits: Limits
    ) -> Capability:
        return read_capability(about, limits)


def analyzed(
    request: ExecutionRequested, tools: Sequence[ToolDefinition], library: Library, limits: Limits
) -> Analysis | Rejection:
    """Analyse a request's program."""
    return analyze(
        request.code,
        tools=tools,
        policy=request.policy,
        limits=limits,
        capabilities=library,
        known_as=request.known_as,
        dry_run=request.dry_run,
        submitted=request.submitted,
    )
