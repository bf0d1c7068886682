"""The catalogue without a registry, for tests."""

from collections.abc import Sequence

from pml_analyzer.ports import CatalogUnavailable
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition


class MemoryCatalog:
    """See Catalog. `known` is what the registry knows, by `str(scope)`; None: it is silent."""

    def __init__(self, known: dict[str, Sequence[ToolDefinition]] | None = None) -> None:
        self.known: dict[str, Sequence[ToolDefinition]] | None = known or {}
        self._copies: dict[Scope, Sequence[ToolDefinition]] = {}

    async def tools(self, scope: Scope) -> Sequence[ToolDefinition]:
        """See Catalog."""
        copy = self._copies.get(scope)
        return copy if copy is not None else await self.reread(scope)

    async def reread(self, scope: Scope) -> Sequence[ToolDefinition]:
        """See Catalog."""
        if self.known is None:
            raise CatalogUnavailable(f"the tools of {scope}: the registry does not answer")
        self._copies[scope] = self.known.get(str(scope), ())
        return self._copies[scope]

    def drop(self, scope: Scope) -> None:
        """See Catalog."""
        self._copies.pop(scope, None)
