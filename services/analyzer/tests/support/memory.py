"""In-memory adapters for tests: a registry, a type checker and a compiler by text search."""

from collections.abc import Mapping, Sequence

from typing_extensions import override

from pml_analysis.check_results import CompileError
from pml_analysis.typing.declarations import NONE
from pml_analysis.typing.type_check import Finding, checked_module, type_errors, unchecked
from pml_analyzer.ports import (
    Capabilities,
    CapabilitiesUnavailable,
    Catalog,
    CatalogUnavailable,
    Compiler,
    WorkersUnavailable,
)
from pml_checker.type_check import TypeChecker
from pml_common.contracts.registry import Reference
from pml_common.contracts.scope import Scope
from pml_common.contracts.structure import Diagnostic
from pml_common.contracts.tool import ToolDefinition


class MemoryCatalog(Catalog):
    """The tool catalog of an in-memory registry. `known` are its contents, by `str(scope)`; None:
    it does not answer."""

    def __init__(self, known: dict[str, Sequence[ToolDefinition]] | None = None) -> None:
        self.known: dict[str, Sequence[ToolDefinition]] | None = known or {}
        self._cache: dict[Scope, Sequence[ToolDefinition]] = {}

    @override
    async def tools(self, scope: Scope) -> Sequence[ToolDefinition]:
        copy = self._cache.get(scope)
        return copy if copy is not None else await self.refresh(scope)

    @override
    async def refresh(self, scope: Scope) -> Sequence[ToolDefinition]:
        if self.known is None:
            raise CatalogUnavailable(f"the tools of {scope}: the registry does not answer")
        self._cache[scope] = self.known.get(str(scope), ())
        return self._cache[scope]

    @override
    def invalidate(self, scope: Scope) -> None:
        self._cache.pop(scope, None)


class MemoryCapabilities(Capabilities):
    """Capabilities of an in-memory registry. `known` are its contents, by `str(scope)`; None: it
    does not answer."""

    def __init__(self, known: dict[str, Sequence[Reference]] | None = None) -> None:
        self.known: dict[str, Sequence[Reference]] | None = known or {}
        self._cache: dict[tuple[Scope, str, str], Reference] = {}

    @override
    async def describe(
        self, scope: Scope, principal: str, references: Sequence[str]
    ) -> Mapping[str, Reference]:
        return {reference: self._described(scope, principal, reference) for reference in references}

    def _described(self, scope: Scope, principal: str, reference: str) -> Reference:
        copy = self._cache.get((scope, principal, reference))
        if copy is not None:
            return copy
        if self.known is None:
            raise CapabilitiesUnavailable(f"the registry does not answer for {scope}")
        for one in self.known.get(str(scope), ()):
            if one.reference == reference:
                if one.capability is not None:
                    self._cache[scope, principal, reference] = one
                return one
        return Reference(reference=reference)

    @override
    def invalidate(self, scope: Scope) -> None:
        self._cache = {key: one for key, one in self._cache.items() if key[0] != scope}


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
