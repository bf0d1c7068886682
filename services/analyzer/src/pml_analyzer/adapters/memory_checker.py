"""A type checker without TypeScript, for tests: it finds what it is told to look for."""

from collections.abc import Mapping, Sequence

from pml_analysis.typing.declarations import NONE
from pml_analysis.typing.type_check import Finding, checked_module, type_errors, unchecked
from pml_common.contracts.structure import Diagnostic
from pml_common.contracts.tool import ToolDefinition

_ASSIGNABILITY = 2322


class MemoryChecker:
    """See TypeChecker. `faults` are texts that are type errors wherever they stand, with what is
    said of them; a text in `beyond` makes the checker give a program up."""

    def __init__(self, faults: Mapping[str, str], beyond: Sequence[str] = ()) -> None:
        self._faults = faults
        self._beyond = beyond

    async def check(
        self,
        code: str,
        free: Sequence[str],
        tools: Sequence[ToolDefinition],
        capabilities: Mapping[str, ToolDefinition] = NONE,
    ) -> Sequence[Diagnostic]:
        """See TypeChecker."""
        if any(text in code for text in self._beyond):
            return [unchecked("the checker gave this program up")]
        module = checked_module(code, free, "declared.d.ts")
        found = [
            _finding(module.text, fault, message)
            for fault, message in self._faults.items()
            if fault in code
        ]
        return type_errors(code, module.prefix, found)


def _finding(text: str, fault: str, message: str) -> Finding:
    before = text[: text.index(fault)].splitlines()
    column = len(before[-1].encode("utf-16-le")) // 2
    return Finding(len(before) - 1, column, _ASSIGNABILITY, message)
