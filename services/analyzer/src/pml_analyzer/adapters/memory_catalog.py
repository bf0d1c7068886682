"""The tool catalog without a registry, for tests."""

from collections.abc import Sequence

from typing_extensions import override

from pml_analyzer.ports import Catalog, CatalogUnavailable
from pml_common.contracts.scope import Scope
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
