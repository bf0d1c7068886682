"""Capabilities: learned, reusable, named programs."""

from typing import Annotated
from uuid import UUID

from pydantic import AwareDatetime, Field, StringConstraints

from pml_common.contracts.base import Contract
from pml_common.contracts.caching import CachePolicy
from pml_common.contracts.decision import Verdict
from pml_common.contracts.scope import Scope
from pml_common.contracts.structure import CallNode, StaticStructure
from pml_common.contracts.tool import JsonObject

CapabilityName = Annotated[
    str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,31}:[a-z][a-z0-9_]{0,63}$")
]
"""`namespace:action[_target[_variant]]`, the display name chosen by a person."""


class CapabilityIdentity(Contract):
    """The capability that a program is; `name` is the one requested, if any."""

    capability_id: UUID
    code_hash: str
    name: CapabilityName | None = None


class PathStats(Contract):
    """Statistics of one path through a structure: node ids in the order reached."""

    path: tuple[str, ...]
    count: int = Field(ge=0)
    success_rate: float = Field(ge=0, le=1)
    mean_duration_ms: float = Field(ge=0)


class OutcomeStats(Contract):
    """The frequency of one outcome of a decision, and the success rate of its runs."""

    count: int = Field(ge=0)
    success_rate: float = Field(ge=0, le=1)


class DecisionStats(Contract):
    """Statistics of one decision node, by outcome."""

    node_id: str
    outcomes: dict[str, OutcomeStats]


class Learning(Contract):
    """Statistics learned from the runs of a capability."""

    paths: tuple[PathStats, ...] = ()
    dominant_path: tuple[str, ...] = ()
    decision_stats: tuple[DecisionStats, ...] = ()


class Usage(Contract):
    """A capability's use so far; the mean is over all runs, in milliseconds."""

    count: int = Field(default=0, ge=0)
    success_count: int = Field(default=0, ge=0)
    mean_duration_ms: float = Field(default=0.0, ge=0)

    @property
    def success_rate(self) -> float:
        """The share of runs that succeeded; 0 before the first."""
        return self.success_count / self.count if self.count else 0.0


class CapabilityDescription(Contract):
    """A capability as needed by callers; `aliases` are its former names, which stay valid."""

    capability_id: UUID
    name: str
    aliases: tuple[str, ...] = ()
    code: str
    code_hash: str
    description: str = ""
    parameters_schema: JsonObject = Field(default_factory=dict)


class NestedCapability(Contract):
    """A capability that a program reaches through its calls, as of the decision: the code that runs
    must have this hash.

    `verdict` and `reason` are the policy's verdict on its name; `called_as` are the names by which
    the program and its nested capabilities call it; `node_ids` are the program's own calls that
    lead to it. `calls` are the capabilities that it calls itself: they and the structure's
    capability nodes are the `contains` relations, which lead from one structure to another.
    `nodes` are its own calls of tools and capabilities, as in its structure.
    """

    capability_id: UUID
    name: str
    code_hash: str
    verdict: Verdict
    reason: str
    called_as: tuple[str, ...]
    node_ids: tuple[str, ...]
    calls: tuple[UUID, ...] = ()
    nodes: tuple[CallNode, ...] = ()


class InjectedCapability(Contract):
    """A nested capability in the form that runs: a function in its caller's sandbox.

    `called_as`, `instrumented` and `insertions` are as in `NestedCapability` and
    `ExecutionAnalyzed`; its node ids are those of its own structure.
    """

    capability_id: UUID
    name: str
    code_hash: str
    called_as: tuple[str, ...]
    instrumented: str
    insertions: tuple[tuple[int, int], ...] = ()


class CapabilityRecord(Contract):
    """A capability as stored by the registry; listed once a run has succeeded. `aliases` are its
    former names."""

    capability_id: UUID
    scope: Scope
    name: str
    aliases: tuple[str, ...] = ()
    named: bool
    listed: bool
    code: str
    code_hash: str
    description: str = ""
    parameters_schema: JsonObject = Field(default_factory=dict)
    structure: StaticStructure
    tools_used: tuple[str, ...] = ()
    usage: Usage = Usage()
    learning: Learning = Learning()
    cache: CachePolicy = CachePolicy()
    created_by: str
    created_at: AwareDatetime
    updated_at: AwareDatetime
