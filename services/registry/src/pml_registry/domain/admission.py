"""Admitting an analysed program as a capability, new or known (C2, C3)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.structure import TaskNode
from pml_registry.domain.documents import capability_document
from pml_registry.domain.names import first_free, unnamed_names


class Known(Protocol):
    """What an analysis may add to."""

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
    """How a capability stands after an analysis; `refused_name` is one that somebody else holds.

    `change` is what others should hear, `altered` whether there is anything to save.
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
        """What the capability is found by."""
        return capability_document(self.name, self.description, self.tools_used)


def wanted_names(analysis: ExecutionAnalyzed, held: Known | None) -> Sequence[str]:
    """Names that `admit` may give and must know to be free or taken."""
    asked = analysis.capability.name
    if held is None:
        return [*([asked] if asked else []), *unnamed_names(analysis.capability.code_hash)]
    return [asked] if asked and not held.named else []


def admit(analysis: ExecutionAnalyzed, held: Known | None, taken: Collection[str]) -> Admission:
    """Give a new capability its name, a known one what it still lacks: a name, a description.

    `taken` are those of `wanted_names` that others hold. Code, structure and a name once given
    stay as they are.
    """
    asked = analysis.capability.name
    if held is None:
        return _created(analysis, asked, taken)
    named = held.named or (asked is not None and asked not in taken)
    name = asked if named and not held.named and asked else held.name
    description = held.description or analysis.intent or ""
    return Admission(
        name=name,
        named=named,
        description=description,
        tools_used=held.tools_used,
        change="named" if name != held.name else None,
        altered=(name, description) != (held.name, held.description),
        refused_name=asked if asked and asked != name else None,
    )


def tools_used(analysis: ExecutionAnalyzed) -> tuple[str, ...]:
    """The tools in a structure, each once, in source order; then those that it reaches through
    other capabilities."""
    nodes = analysis.structure.nodes
    direct = [node.tool for node in nodes if isinstance(node, TaskNode)]
    reached = [tool.tool for tool in analysis.decision.tools if tool.node_ids]
    return tuple(dict.fromkeys([*direct, *reached]))


def _created(analysis: ExecutionAnalyzed, asked: str | None, taken: Collection[str]) -> Admission:
    named = asked is not None and asked not in taken
    name = first_free(wanted_names(analysis, None), taken)
    return Admission(
        name=name,
        named=named,
        description=analysis.intent or "",
        tools_used=tools_used(analysis),
        change="created",
        altered=True,
        refused_name=None if named else asked,
    )
