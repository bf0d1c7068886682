"""Capabilities: learned, reusable, named programs."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field, StringConstraints

from pml_common.contracts.base import Contract
from pml_common.contracts.caching import CachePolicy
from pml_common.contracts.decision import Verdict
from pml_common.contracts.scope import Scope
from pml_common.contracts.source import CapabilitySource, FromCode
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


Share = Annotated[float, Field(ge=0, le=1)]


class PathStats(Contract):
    """Statistics of one path through a structure: node ids in the order reached. `success_rate` is
    a learned value, and `low` and `high` its interval, as in `Usage`."""

    path: tuple[str, ...]
    count: int = Field(ge=0)
    success_rate: float = Field(ge=0, le=1)
    mean_duration_ms: float = Field(ge=0)
    low: Share | None = None
    high: Share | None = None


class OutcomeStats(Contract):
    """The frequency of one outcome of a decision, and the success rate of its runs, a learned value
    with its interval, as in `Usage`."""

    count: int = Field(ge=0)
    success_rate: float = Field(ge=0, le=1)
    low: Share | None = None
    high: Share | None = None


class DecisionStats(Contract):
    """Statistics of one decision node, by outcome."""

    node_id: str
    outcomes: dict[str, OutcomeStats]


class NodeStats(Contract):
    """Statistics of the tool calls of one node: their number, the learned success rate of a call
    with its interval, as in `Usage`, and the mean of their durations, in milliseconds. Calls that
    failed by the fault of others are not in it."""

    node_id: str
    count: int = Field(ge=0)
    success_rate: float = Field(ge=0, le=1)
    mean_duration_ms: float = Field(ge=0)
    low: Share | None = None
    high: Share | None = None


class Learning(Contract):
    """Statistics learned from the runs of a capability."""

    paths: tuple[PathStats, ...] = ()
    dominant_path: tuple[str, ...] = ()
    decision_stats: tuple[DecisionStats, ...] = ()
    node_stats: tuple[NodeStats, ...] = ()


class Usage(Contract):
    """A capability's use so far. `counts` says of what: of one version, or of a record, over all
    its versions. `count` is all runs; those that failed by a fault of the caller (`caller_faults`)
    or of the environment (`environment_faults`) are counted and not judged. `success_streak` is the
    number of judged runs that succeeded since the last that did not; the mean is over the judged
    runs, in milliseconds.

    `value` is the learned success rate, in which recent runs weigh more, and each principal only so
    much; it lies between `low` and `high` with 95 % confidence. None before the first judged run,
    and of a record.
    """

    counts: Literal["version", "record"] = "version"

    count: int = Field(default=0, ge=0)
    success_count: int = Field(default=0, ge=0)
    success_streak: int = Field(default=0, ge=0)
    mean_duration_ms: float = Field(default=0.0, ge=0)
    caller_faults: int = Field(default=0, ge=0)
    environment_faults: int = Field(default=0, ge=0)
    value: Share | None = None
    low: Share | None = None
    high: Share | None = None

    @property
    def judged(self) -> int:
        """The number of runs that succeeded or failed by the capability's own fault."""
        return max(0, self.count - self.caller_faults - self.environment_faults)

    @property
    def success_rate(self) -> float:
        """The share of judged runs that succeeded; 0 before the first."""
        return min(1.0, self.success_count / self.judged) if self.judged else 0.0

    @property
    def rate(self) -> float:
        """The learned success rate; without one the share of judged runs that succeeded."""
        return self.success_rate if self.value is None else self.value


Health = Literal["healthy", "unproven", "degraded", "failing"]
"""Health of a version, by the interval of its learned success rate: `failing`: it fails more often
than it succeeds; `degraded`: it succeeds less often than nine times in ten; `healthy`: it succeeds
more often than it fails; `unproven`: too few runs to tell."""


class CapabilityDescription(Contract):
    """A capability as needed by callers; `aliases` are its former names, which stay valid.
    `verified` is as in `CapabilityRecord`."""

    capability_id: UUID
    name: str
    aliases: tuple[str, ...] = ()
    code: str
    code_hash: str
    description: str = ""
    parameters_schema: JsonObject = Field(default_factory=dict)
    verified: bool = False


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
    `ExecutionAnalyzed`; its node ids are those of its own structure. `certain` is the schema of the
    arguments that it needs, {} if none.
    """

    capability_id: UUID
    name: str
    code_hash: str
    called_as: tuple[str, ...]
    instrumented: str
    insertions: tuple[tuple[int, int], ...] = ()
    certain: JsonObject = Field(default_factory=dict)


Visibility = Literal["private", "project", "org", "public"]
"""The circle that sees a record: its owner, its project, its organisation, everyone."""

WholeTag = Annotated[str, StringConstraints(pattern=r"^v(0|[1-9]\d{0,8})(\.(0|[1-9]\d{0,8})){2}$")]
"""The tag of a version, as `v1.2.0`."""


class CapabilityRecord(Contract):
    """A record as the registry has it, with one of its versions, the latest unless another was
    asked for; listed once a run of that has succeeded. `capability_id` is the id of the version's
    behaviour: equal for equal code in a scope. `aliases` are the record's former names;
    `yanked_reason` says why the version should not be used, `notices` what a caller should change:
    a former name, a yanked or failing version. `fqdn` is for people and other scopes: calls use
    names. `signature` is the registry's of the version, by its key `key_id`; `verified`: that is
    valid, and the last runs succeeded. `health` is the version's; where it is failing, `last_good`
    refers to the latest earlier version that is healthy, if there is one. `source` is what `code`
    was first made from. `dependencies_count` counts the version's dependencies in both directions;
    None where they were not asked for."""

    record_id: UUID
    capability_id: UUID
    scope: Scope
    fqdn: str
    name: str
    aliases: tuple[str, ...] = ()
    named: bool
    version: int = Field(default=1, ge=1)
    version_tag: WholeTag | None = None
    yanked_reason: str | None = None
    signature: str | None = None
    key_id: str | None = None
    verified: bool = False
    health: Health = "unproven"
    last_good: str | None = None
    owner: str
    visibility: Visibility = "project"
    tags: tuple[str, ...] = ()
    forked_from: str | None = None
    listed: bool
    code: str
    code_hash: str
    source: CapabilitySource = FromCode()
    description: str = ""
    parameters_schema: JsonObject = Field(default_factory=dict)
    structure: StaticStructure
    tools_used: tuple[str, ...] = ()
    usage: Usage = Usage()
    learning: Learning = Learning()
    cache: CachePolicy = CachePolicy()
    dependencies_count: int | None = Field(default=None, ge=0)
    created_by: str
    created_at: AwareDatetime
    updated_at: AwareDatetime
    notices: tuple[str, ...] = ()
