"""The optional type check of a program that was understood."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pml_analysis.analysis import Analysis, Rejection
from pml_analysis.typed_analysis import with_types
from pml_analysis.typing.declarations import NONE
from pml_analyzer.ports import TypeChecker
from pml_common.contracts.tool import ToolDefinition


@dataclass(frozen=True)
class TypeCheck:
    """Who checks types, and whether an error rejects the program or is told with it."""

    checker: TypeChecker
    reject: bool

    async def of(
        self,
        code: str,
        outcome: Analysis | Rejection,
        tools: Sequence[ToolDefinition],
        capabilities: Mapping[str, ToolDefinition] = NONE,
    ) -> Analysis | Rejection:
        """The outcome with what its types say; a program that is rejected anyway is not looked
        at."""
        if isinstance(outcome, Rejection):
            return outcome
        told = await self.checker.check(code, outcome.free, tools, capabilities)
        return with_types(outcome, told, reject=self.reject)
