"""What the analyzer's handlers need of the world."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from pml_analysis.analysis import Analysis, Rejection
from pml_analysis.compiled import Misfit
from pml_analysis.decision.capabilities import Capability, Library
from pml_analysis.text.readable import Limits
from pml_analysis.typing.declarations import NONE
from pml_common.contracts.capability import CapabilityDescription
from pml_common.contracts.gateway import ExecutionRequested
from pml_common.contracts.registry import Reference
from pml_common.contracts.scope import Scope
from pml_common.contracts.structure import Diagnostic
from pml_common.contracts.tool import ToolDefinition
from pml_common.errors import Retryable


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


class WorkersUnavailable(Retryable):
    """No process can be started to do this in; try again later."""


class ScopeBusy(Retryable):
    """A scope asks for more at a time than it may; try again later."""


class Engine(Protocol):
    """Reads programs. Raises ScopeBusy, WorkersUnavailable."""

    async def analyze(
        self,
        request: ExecutionRequested,
        tools: Sequence[ToolDefinition],
        library: Library,
        limits: Limits,
    ) -> Analysis | Rejection:
        """What reading a request's program tells; a rejection where that takes too long."""
        ...

    async def read_capability(
        self, scope: Scope, about: CapabilityDescription, limits: Limits
    ) -> Capability:
        """A capability with all that it calls; at fault where reading it takes too long."""
        ...


class Compiler(Protocol):
    """Compiles programs as the sandbox does and runs nothing. Raises ScopeBusy,
    WorkersUnavailable."""

    async def misfit(self, scope: Scope, code: str) -> Misfit | None:
        """Why a program, alone in its module, does not compile; None where it does."""
        ...
