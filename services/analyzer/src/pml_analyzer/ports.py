"""What the analyzer's handlers need of the world."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from pml_analysis.typing.declarations import NONE
from pml_common.contracts.registry import Reference
from pml_common.contracts.scope import Scope
from pml_common.contracts.structure import Diagnostic
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


class TypeChecker(Protocol):
    """Looks at types before anything runs."""

    async def check(
        self,
        code: str,
        free: Sequence[str],
        tools: Sequence[ToolDefinition],
        capabilities: Mapping[str, ToolDefinition] = NONE,
    ) -> Sequence[Diagnostic]:
        """The type errors of a program that the analysis let pass, in source order; `free` are
        the names in it that the caller gives values, `capabilities` stand under the names that
        programs call them by.

        Raises nothing: where no answer comes in time it is one warning that says why.
        """
        ...


class CapabilitiesUnavailable(Retryable):
    """Nobody says which capabilities a program means; try again later."""


class Capabilities(Protocol):
    """The capabilities that programs name. Asking raises CapabilitiesUnavailable."""

    async def describe(self, scope: Scope, references: Sequence[str]) -> Mapping[str, Reference]:
        """What each reference, 64 at most, means in the scope: known ones as they were a short
        while ago at worst, unknown ones as things are now."""
        ...

    def drop(self, scope: Scope) -> None:
        """What was read of a scope before is no longer true."""
        ...
