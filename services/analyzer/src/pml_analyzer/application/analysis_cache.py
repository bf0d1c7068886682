"""A cache of analyses, for programs that are requested again."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, NamedTuple

from pml_analysis.analysis import NO_CAPABILITIES, Analysis, Rejection
from pml_analysis.decision.capabilities import Library
from pml_analysis.text.limits import Limits
from pml_analyzer.ports import Engine
from pml_common.contracts.decision import Policy
from pml_common.contracts.gateway import ExecutionRequested
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition

MAX_CACHED: Final = 128

_MAX_LENGTH: Final = 8 * 1024
"""Characters of the longest program whose analysis is cached."""


class _Inputs(NamedTuple):
    """All inputs of an analysis but the tools."""

    scope: Scope
    code: str
    policy: Policy
    known_as: tuple[str, ...]
    submitted: bool
    limits: Limits


class AnalysisCache:
    """Analyses of the `max_entries` programs requested last, each valid for the identical tools
    object: a catalog that is read anew is another. Programs that call capabilities, and dry runs,
    are analysed every time."""

    def __init__(self, engine: Engine, max_entries: int = MAX_CACHED) -> None:
        self.engine = engine
        self._max_entries = max_entries
        self._entries: OrderedDict[_Inputs, tuple[Sequence[ToolDefinition], Analysis]] = (
            OrderedDict()
        )

    async def of(
        self,
        request: ExecutionRequested,
        tools: Sequence[ToolDefinition],
        library: Library,
        limits: Limits,
    ) -> Analysis | Rejection:
        """Return the analysis of a request's program."""
        if library is not NO_CAPABILITIES or request.dry_run or len(request.code) > _MAX_LENGTH:
            return await self.engine.analyze(request, tools, library, limits)
        inputs = _Inputs(
            request.scope,
            request.code,
            request.policy,
            request.known_as,
            request.submitted,
            limits,
        )
        entry = self._entries.get(inputs)
        if entry is not None and entry[0] is tools:
            self._entries.move_to_end(inputs)
            return entry[1]
        outcome = await self.engine.analyze(request, tools, library, limits)
        if isinstance(outcome, Analysis):
            self._put(inputs, tools, outcome)
        return outcome

    def _put(self, inputs: _Inputs, tools: Sequence[ToolDefinition], analysis: Analysis) -> None:
        self._entries[inputs] = tools, analysis
        self._entries.move_to_end(inputs)
        if len(self._entries) > self._max_entries:
            self._entries.popitem(last=False)
