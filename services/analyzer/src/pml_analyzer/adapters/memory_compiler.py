"""A compiler without V8, for tests: it refuses what it is told to."""

from collections.abc import Mapping

from pml_analysis.compiled import Misfit
from pml_analyzer.ports import WorkersUnavailable
from pml_common.contracts.scope import Scope


class MemoryCompiler:
    """See Compiler. `refused` are texts that do not compile wherever they stand, with why; `asked`
    is what was compiled, `is_away` makes it as if no process could be started."""

    def __init__(self, refused: Mapping[str, Misfit] | None = None) -> None:
        self._refused = dict(refused or {})
        self.asked: list[str] = []
        self.is_away = False

    async def misfit(self, scope: Scope, code: str) -> Misfit | None:
        """See Compiler."""
        if self.is_away:
            raise WorkersUnavailable(f"compiler: away, for {scope} too")
        self.asked.append(code)
        return next((why for text, why in self._refused.items() if text in code), None)
