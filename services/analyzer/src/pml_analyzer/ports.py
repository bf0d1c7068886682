"""What the analyzer's handlers need of the world."""

from collections.abc import Sequence
from typing import Protocol

from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition
from pml_common.disposition import Retryable


class CatalogUnavailable(Retryable):
    """Nobody says which tools there are; try again later."""


class Catalog(Protocol):
    """The tools of a scope. Reading raises CatalogUnavailable."""

    async def tools(self, scope: Scope) -> Sequence[ToolDefinition]:
        """The scope's tools, as they were a short while ago at worst."""
        ...

    async def reread(self, scope: Scope) -> Sequence[ToolDefinition]:
        """The scope's tools as they are now."""
        ...

    def drop(self, scope: Scope) -> None:
        """What was read of a scope before is no longer true."""
        ...
