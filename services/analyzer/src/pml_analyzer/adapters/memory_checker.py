"""A type checker without TypeScript, for tests: it finds configured texts."""

from collections.abc import Mapping, Sequence

from typing_extensions import override

from pml_analysis.typing.declarations import NONE
from pml_analysis.typing.type_check import Finding, checked_module, type_errors, unchecked
from pml_checker.type_check import TypeChecker
from pml_common.contracts.structure import Diagnostic
from pml_common.contracts.tool import ToolDefinition

_ASSIGNABILITY = 2322


class MemoryChecker(TypeChecker):
    """Checks by text search. `faults` are texts that are type errors in any position, with their
    messages; a text in `beyond` makes the checker fail on a program."""

    def __init__(self, faults: Mapping[str, str], beyond: Sequence[str] = ()) -> None:
        self._faults = faults
        self._beyond = beyond

    @override
    async def check(
        self,
        code: str,
        free: Sequence[str],
        tools: Sequence[ToolDefinition],
        capabilities: Mapping[str, ToolDefinition] = NONE,
    ) -> Sequence[Diagnostic]:
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
