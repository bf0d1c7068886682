"""Admission of an analysed program as a capability, new or existing."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.structure import TaskNode
from pml_registry.domain.documents import capability_document
from pml_registry.domain.names import first_free, unnamed_names


class ExistingCapability(Protocol):
    """The fields of a capability that an analysis may complete."""

    @property
    def name(self) -> str: ...
    @property
    def named(self) -> bool: ...
    @property
    def description(self) -> str: ...
    @property
    def tools_used(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Admission:
    """A capability's state after an analysis; `refused_name` belongs to another capability.

    `change` is to be published; `altered` says whether there is anything to store.
    """

    name: str
    named: bool
    description: str
    tools_used: tuple[str, ...]
    change: Literal["created", "named"] | None
    altered: bool
    refused_name: str | None = None

    @property
    def document(self) -> str:
        """The capability's search document."""
        return capability_document(self.name, self.description, self.tools_used)


def candidate_names(
    analysis: ExecutionAnalyzed, existing: ExistingCapability | None
) -> Sequence[str]:
    """Names that `admit` may give; it needs to know which of them are taken."""
    requested = analysis.capability.name
    if existing is None:
        return [*([requested] if requested else []), *unnamed_names(analysis.capability.code_hash)]
    return [requested] if requested and not existing.named else []


def admit(
    analysis: ExecutionAnalyzed, existing: ExistingCapability | None, taken: Collection[str]
) -> Admission:
    """Name a new capability; complete an existing one's missing name or description.

    `taken` are those of `candidate_names` in use. Code, structure and a given name never change.
    """
    requested = analysis.capability.name
    if existing is None:
        return _created(analysis, requested, taken)
    named = existing.named or (requested is not None and requested not in taken)
    name = requested if named and not existing.named and requested else existing.name
    description = existing.description or analysis.intent or ""
    return Admission(
        name=name,
        named=named,
        description=description,
        tools_used=existing.tools_used,
        change="named" if name != existing.name else None,
        altered=(name, description) != (existing.name, existing.description),
        refused_name=requested if requested and requested != name else None,
    )


def tools_used(analysis: ExecutionAnalyzed) -> tuple[str, ...]:
    """The tools in a structure, each once, in source order; then those reached through other
    capabilities."""
    nodes = analysis.structure.nodes
    direct = [node.tool for node in nodes if isinstance(node, TaskNode)]
    reached = [tool.tool for tool in analysis.decision.tools if tool.node_ids]
    return tuple(dict.fromkeys([*direct, *reached]))


def _created(
    analysis: ExecutionAnalyzed, requested: str | None, taken: Collection[str]
) -> Admission:
    named = requested is not None and requested not in taken
    name = first_free(candidate_names(analysis, None), taken)
    return Admission(
        name=name,
        named=named,
        description=analysis.intent or "",
        tools_used=tools_used(analysis),
        change="created",
        altered=True,
        refused_name=None if named else requested,
    )
