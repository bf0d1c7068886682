"""The optional type check of an analysed program."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pml_analysis.analysis import Analysis, Rejection
from pml_analysis.typed_analysis import with_types
from pml_analysis.typing.declarations import NONE
from pml_analyzer.ports import TypeChecker
from pml_common.contracts.tool import ToolDefinition


@dataclass(frozen=True)
class TypeCheck:
    """A type checker, and whether its errors reject the program or become warnings."""

    checker: TypeChecker
    reject: bool

    async def of(
        self,
        code: str,
        outcome: Analysis | Rejection,
        tools: Sequence[ToolDefinition],
        capabilities: Mapping[str, ToolDefinition] = NONE,
    ) -> Analysis | Rejection:
        """Add the type errors to an outcome; a rejected program is not checked."""
        if isinstance(outcome, Rejection):
            return outcome
        told = await self.checker.check(code, outcome.free, tools, capabilities)
        return with_types(outcome, told, reject=self.reject)
