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

MOST: Final = 128

_LONGEST: Final = 8 * 1024
"""Characters of the longest program whose analysis is cached."""


class _Asked(NamedTuple):
    """All inputs of an analysis but the tools."""

    scope: Scope
    code: str
    policy: Policy
    known_as: tuple[str, ...]
    limits: Limits


class Analyses:
    """Analyses of the `most` programs requested last, each valid for the identical tools object: a
    catalog that is read anew is another. Programs that call capabilities, and dry runs, are
    analysed every time."""

    def __init__(self, engine: Engine, most: int = MOST) -> None:
        self.engine = engine
        self._most = most
        self._kept: OrderedDict[_Asked, tuple[Sequence[ToolDefinition], Analysis]] = OrderedDict()

    async def of(
        self,
        request: ExecutionRequested,
        tools: Sequence[ToolDefinition],
        library: Library,
        limits: Limits,
    ) -> Analysis | Rejection:
        """Return the analysis of a request's program."""
        if library is not NO_CAPABILITIES or request.dry_run or len(request.code) > _LONGEST:
            return await self.engine.analyze(request, tools, library, limits)
        asked = _Asked(request.scope, request.code, request.policy, request.known_as, limits)
        kept = self._kept.get(asked)
        if kept is not None and kept[0] is tools:
            self._kept.move_to_end(asked)
            return kept[1]
        outcome = await self.engine.analyze(request, tools, library, limits)
        if isinstance(outcome, Analysis):
            self._keep(asked, tools, outcome)
        return outcome

    def _keep(self, asked: _Asked, tools: Sequence[ToolDefinition], analysis: Analysis) -> None:
        self._kept[asked] = tools, analysis
        self._kept.move_to_end(asked)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
