"""The optional type check of an analysed program."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pml_analysis.analysis import Analysis, Rejection
from pml_analysis.check_results import with_types
from pml_analysis.typing.declarations import NONE
from pml_common.contracts.structure import Diagnostic
from pml_common.contracts.tool import ToolDefinition


class TypeChecker(Protocol):
    """Checks types before anything runs."""

    async def check(
        self,
        code: str,
        free: Sequence[str],
        tools: Sequence[ToolDefinition],
        capabilities: Mapping[str, ToolDefinition] = NONE,
    ) -> Sequence[Diagnostic]:
        """Return the type errors of a program that the analysis accepted, in source order; `free`
        are the names in it that the caller's arguments give values, `capabilities` are by the names
        that programs call them by.

        Raises nothing: if no answer comes in time, returns one warning with the reason.
        """
        ...


@dataclass(frozen=True)
class TypeCheck:
    """A type checker, and whether its errors reject the program or become warnings."""

    checker: TypeChecker
    reject: bool

    async def of(
        self,
        outcome: Analysis | Rejection,
        tools: Sequence[ToolDefinition],
        capabilities: Mapping[str, ToolDefinition] = NONE,
    ) -> Analysis | Rejection:
        """Add the type errors to an outcome; a rejected program is not checked."""
        if isinstance(outcome, Rejection):
            return outcome
        found = await self.checker.check(outcome.code, outcome.free, tools, capabilities)
        if not self.reject:  # that types were not checked is no doubt about the program
            found = [each for each in found if each.severity == "error"]
        return with_types(outcome, found, reject=self.reject)
