"""Admission of an analysed program as a new capability."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.structure import TaskNode
from pml_common.contracts.tool import JsonObject
from pml_registry.domain.documents import capability_document, capability_terms
from pml_registry.domain.names import first_free, unnamed_names


@dataclass(frozen=True)
class Admission:
    """A new capability under a provisional name. Nothing says yet what it is for: that is taken
    from a request that has succeeded."""

    name: str
    tools_used: tuple[str, ...]

    @property
    def document(self) -> str:
        """The capability's search document."""
        return capability_document(self.name, "", self.tools_used)

    def terms(self, parameters_schema: JsonObject) -> Mapping[str, float]:
        """The capability's weighed terms."""
        return capability_terms(self.name, "", self.tools_used, parameters_schema)


def candidate_names(analysis: ExecutionAnalyzed) -> Sequence[str]:
    """Names that `admit` may give; it needs to know which of them are taken."""
    return unnamed_names(analysis.capability.code_hash)


def admit(analysis: ExecutionAnalyzed, taken: Collection[str]) -> Admission:
    """Give a new capability a provisional name; another is given once a run has succeeded under it.

    `taken` are those of `candidate_names` in use. An existing capability stays as it is.
    """
    return Admission(first_free(candidate_names(analysis), taken), tools_used(analysis))


def tools_used(analysis: ExecutionAnalyzed) -> tuple[str, ...]:
    """The tools in a structure, each once, in source order; then those reached through other
    capabilities."""
    nodes = analysis.structure.nodes
    direct = [node.tool for node in nodes if isinstance(node, TaskNode)]
    reached = [tool.tool for tool in analysis.decision.tools if tool.node_ids]
    return tuple(dict.fromkeys([*direct, *reached]))
