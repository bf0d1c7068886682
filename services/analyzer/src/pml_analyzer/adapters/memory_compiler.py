"""A compiler without V8, for tests: it refuses configured texts."""

from collections.abc import Mapping

from typing_extensions import override

from pml_analysis.check_results import CompileError
from pml_analyzer.ports import Compiler, WorkersUnavailable
from pml_common.contracts.scope import Scope


class MemoryCompiler(Compiler):
    """Compiles by text search. `refused` are texts that do not compile in any position, with the
    reason; `asked` are the programs compiled so far, `is_away` simulates that no process can be
    started."""

    def __init__(self, refused: Mapping[str, CompileError] | None = None) -> None:
        self._refused = dict(refused or {})
        self.asked: list[str] = []
        self.is_away = False

    @override
    async def compile_error(self, scope: Scope, code: str) -> CompileError | None:
        if self.is_away:
            raise WorkersUnavailable(f"compiler: away, for {scope} too")
        self.asked.append(code)
        return next((why for text, why in self._refused.items() if text in code), None)
