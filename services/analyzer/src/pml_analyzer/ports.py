"""Ports of the analyzer."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from pml_analysis.analysis import Analysis, Rejection
from pml_analysis.check_results import CompileError
from pml_analysis.decision.capabilities import Capability, Library
from pml_analysis.text.limits import Limits
from pml_common.contracts.capability import CapabilityDescription
from pml_common.contracts.gateway import ExecutionRequested
from pml_common.contracts.registry import Reference
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition
from pml_common.errors import Retryable


class CatalogUnavailable(Retryable):
    """The registry does not return the tool catalog; try again later."""


class Catalog(Protocol):
    """The tools of a scope. Reading raises CatalogUnavailable."""

    async def tools(self, scope: Scope) -> Sequence[ToolDefinition]:
        """Return the scope's tools; they may be slightly outdated."""
        ...

    async def refresh(self, scope: Scope) -> Sequence[ToolDefinition]:
        """Return the scope's current tools."""
        ...

    def invalidate(self, scope: Scope) -> None:
        """Invalidate the cached tools of a scope."""
        ...


class CapabilitiesUnavailable(Retryable):
    """The registry does not resolve capabilities; try again later."""


class Capabilities(Protocol):
    """The capabilities that programs name. Reading raises CapabilitiesUnavailable."""

    async def describe(
        self, scope: Scope, principal: str, references: Sequence[str]
    ) -> Mapping[str, Reference]:
        """Resolve references of a principal's programs, 64 at most: known ones may be slightly
        outdated, unknown ones are current."""
        ...

    def invalidate(self, scope: Scope) -> None:
        """Invalidate the cached capabilities of a scope."""
        ...


class WorkersUnavailable(Retryable):
    """No worker process can be started; try again later."""


class ScopeBusy(Retryable):
    """A scope exceeds its share of the workers; try again later."""


class Engine(Protocol):
    """Analyses programs. Raises ScopeBusy, WorkersUnavailable."""

    async def analyze(
        self,
        request: ExecutionRequested,
        tools: Sequence[ToolDefinition],
        library: Library,
        limits: Limits,
    ) -> Analysis | Rejection:
        """Analyse a request's program; returns a rejection where that takes too long."""
        ...

    async def read_capability(
        self, scope: Scope, about: CapabilityDescription, limits: Limits
    ) -> Capability:
        """Return a capability with all its calls; with a fault where reading it takes too long."""
        ...


class Compiler(Protocol):
    """Compiles programs like the sandbox, without running them. Raises ScopeBusy,
    WorkersUnavailable."""

    async def compile_error(self, scope: Scope, code: str) -> CompileError | None:
        """Return why a program, alone in its module, does not compile; None where it does."""
        ...
