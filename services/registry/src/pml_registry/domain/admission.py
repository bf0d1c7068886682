"""Admission of an analysed program as a capability, new or existing."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.structure import TaskNode
from pml_common.contracts.tool import JsonObject
from pml_registry.domain.documents import capability_document, capability_terms
from pml_registry.domain.names import first_free, unnamed_names


class ExistingCapability(Protocol):
    """The fields of a capability that an analysis may complete."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def tools_used(self) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class Admission:
    """A capability's state after an analysis. `change` is to be published; `altered` says whether
    there is anything to store."""

    name: str
    description: str
    tools_used: tuple[str, ...]
    change: Literal["created"] | None
    altered: bool

    @property
    def document(self) -> str:
        """The capability's search document."""
        return capability_document(self.name, self.description, self.tools_used)

    def terms(self, parameters_schema: JsonObject) -> Mapping[str, float]:
        """The capability's weighed terms."""
        return capability_terms(self.name, self.description, self.tools_used, parameters_schema)


def candidate_names(
    analysis: ExecutionAnalyzed, existing: ExistingCapability | None
) -> Sequence[str]:
    """Names that `admit` may give; it needs to know which of them are taken."""
    return [] if existing else unnamed_names(analysis.capability.code_hash)


def admit(
    analysis: ExecutionAnalyzed, existing: ExistingCapability | None, taken: Collection[str]
) -> Admission:
    """Give a new capability a provisional name; complete an existing one's missing description.

    `taken` are those of `candidate_names` in use. Code, structure and name never change here: a
    name is given once a run has succeeded under it.
    """
    if existing is None:
        return Admission(
            name=first_free(candidate_names(analysis, None), taken),
            description=analysis.intent or "",
            tools_used=tools_used(analysis),
            change="created",
            altered=True,
        )
    description = existing.description or analysis.intent or ""
    return Admission(
        name=existing.name,
        description=description,
        tools_used=existing.tools_used,
        change=None,
        altered=description != existing.description,
    )


def tools_used(analysis: ExecutionAnalyzed) -> tuple[str, ...]:
    """The tools in a structure, each once, in source order; then those reached through other
    capabilities."""
    nodes = analysis.structure.nodes
    direct = [node.tool for node in nodes if isinstance(node, TaskNode)]
    reached = [tool.tool for tool in analysis.decision.tools if tool.node_ids]
    return tuple(dict.fromkeys([*direct, *reached]))
