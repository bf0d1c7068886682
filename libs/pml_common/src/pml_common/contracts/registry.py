"""Contracts of the registry: capabilities, the tool catalog, discovery."""

from typing import Annotated, ClassVar, Literal
from uuid import UUID

from pydantic import Field, StringConstraints

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.base import Contract, Event, Query
from pml_common.contracts.caching import CacheSettings
from pml_common.contracts.capability import (
    CapabilityDescription,
    CapabilityName,
    CapabilityRecord,
    Health,
    Usage,
    WholeTag,
)
from pml_common.contracts.cursors import PlaceCursor
from pml_common.contracts.decision import Policy
from pml_common.contracts.dependencies import Dependency
from pml_common.contracts.dns import RecordChange
from pml_common.contracts.source import SourceType
from pml_common.contracts.tool import JsonObject, QuarantinedTool, ToolDefinition


class CapabilityChanged(Event):
    """A capability was first listed, has new statistics, or its record changed; then `record_id`,
    the `version` concerned, and by whom. `name` is the record's present name. With new statistics
    `health` is the capability's, if it is another than before. `described`: a version is described
    in other words."""

    entity_field: ClassVar[str] = "capability_id"

    capability_id: UUID
    name: str
    change: Literal["listed", "learned"] | RecordChange
    record_id: UUID | None = None
    version: int | None = Field(default=None, ge=1)
    principal: str | None = None
    health: Health | None = None
    described: bool = False


class CatalogChanged(Event):
    """A server's tools changed in the tool catalog; readers drop their cached copies."""

    entity_field: ClassVar[str] = "server"

    server: str


class ResolveCapability(Query):
    """Find one capability by a reference: its name in the scope, or beyond it where that is
    visible, its fully qualified name, or its id; with a selector of a version. Without a principal
    a service asks for itself, and finds all of the scope.
    `count_dependencies`: with the number of its dependencies, which costs one more read."""

    reference: str
    principal: str | None = None
    count_dependencies: bool = False


class ReserveName(Query):
    """Reserve a name for the workflow of an analysed program, before it is accepted. Idempotent:
    a repetition renews the reservation.

    It lapses 60 s later, unless the workflow is accepted by then. `update`: where other code of the
    same owner has the name, the program becomes its next version, with this tag and summary.
    """

    workflow_id: UUID
    name: CapabilityName
    analysis: ExecutionAnalyzed
    update: bool = False
    version_tag: WholeTag | None = None
    change_summary: Annotated[str, Field(max_length=2000)] = ""


class ReservedName(Contract):
    """The relation of the name to the program: `use` if it has it already, as this version; else
    what it will be once the workflow has succeeded: the name of a new record (`create`), one more
    name of the record that has the code (`alias`), or that of the record whose next version it
    becomes (`version`)."""

    name: str
    purpose: Literal["use", "create", "alias", "version"]
    record_id: UUID | None = None
    version: int = Field(default=1, ge=1)


class SettleName(Query):
    """Give the reserved name to the capability of a workflow that has succeeded, or release it.
    Idempotent."""

    workflow_id: UUID
    succeeded: bool


class SettledName(Contract):
    """The name that the capability got; None where there was no reservation, or it was released."""

    name: str | None = None


class SetCachePolicy(Query):
    """Set whether results of a capability are cached, as its owner or an admin; the reply is the
    updated capability. Idempotent."""

    principal: str
    is_admin: bool = False
    reference: str
    cache: CacheSettings


CapabilityReference = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:@-]{1,256}$")]
"""A program's reference to a capability: its id, name, callable name (`fs_ensure`), or callable
name with the last digits of the id (`fs_ensure_1f3e`); an id or a name with a selector of a version
(`fs:ensure@v1`)."""


class DescribeCapabilities(Query):
    """Find the capabilities that a principal's programs refer to."""

    principal: str | None = None
    references: Annotated[tuple[CapabilityReference, ...], Field(max_length=64)]


class Reference(Contract):
    """The capability of one reference in the scope, or None; then `near` are similar references of
    the same form. `refused`: there is one, and this is why it must not run, or why it has no such
    version. `notices` say what the caller should change: a former name, a yanked or failing
    version."""

    reference: str
    capability: CapabilityDescription | None = None
    near: tuple[str, ...] = ()
    refused: str | None = None
    notices: tuple[str, ...] = ()


class CapabilityDescriptions(Contract):
    """Every reference once, in the order of the query."""

    references: tuple[Reference, ...]


class ListCapabilities(Query):
    """List the capabilities of the scope that the principal may see, the most used first."""

    principal: str | None = None
    include_unlisted: bool = False
    limit: int = Field(default=50, ge=1, le=200)
    offset: int = Field(default=0, ge=0)
    cursor: PlaceCursor | None = None


class CapabilityPage(Contract):
    """One page of capabilities, and the total number; with `next_cursor` there are more."""

    capabilities: tuple[CapabilityRecord, ...]
    total: int = Field(ge=0)
    next_cursor: PlaceCursor | None = None


class ListTools(Query):
    """List the scope's tool catalog, or one server's part of it."""

    server: str | None = None


class ToolCatalog(Contract):
    """Tools, sorted by id, and those in quarantine, which nothing may call."""

    tools: tuple[ToolDefinition, ...]
    quarantined: tuple[QuarantinedTool, ...] = ()


class Discover(Query):
    """Rank tools and capabilities that the principal may see by their match with an intent; those
    that `policy` denies are neither returned nor counted."""

    principal: str | None = None
    intent: Annotated[str, Field(min_length=1, max_length=4000)]
    type: Literal["tool", "capability", "all"] = "all"
    min_score: float = Field(default=0.0, ge=0, le=1)
    limit: int = Field(default=10, ge=1, le=100)
    offset: int = Field(default=0, ge=0)
    policy: Policy | None = None


class ToolHit(Contract):
    """A tool that matches the intent; `score` in [0, 1], of which use added `from_use`. `call`: a
    line of a program that calls it, with placeholders. `signature`: its types, in TypeScript, after
    those that it refers to by name; `result_type` is that of its result, `any` where it is not
    known."""

    type: Literal["tool"] = "tool"
    id: str
    name: str
    score: float = Field(ge=0, le=1)
    from_use: float = Field(default=0.0, ge=0, le=1)
    description: str
    input_schema: JsonObject
    output_schema: JsonObject | None = None
    call: str = ""
    signature: str = ""
    result_type: str = ""


class CapabilityHit(Contract):
    """A capability that matches the intent; `score` in [0, 1], `call` and `signature` as of a tool;
    `mcp_tool` is the name by which MCP clients call it, if it has a name of its own.
    `dependencies`: what it calls and needs, the most confident first, at most 20. `preview`: the
    beginning of its program, at most 240 characters. `health` and `last_good` are as in
    `CapabilityRecord`."""

    type: Literal["capability"] = "capability"
    id: UUID
    name: str
    score: float = Field(ge=0, le=1)
    from_use: float = Field(default=0.0, ge=0, le=1)
    description: str
    parameters_schema: JsonObject
    tools_used: tuple[str, ...]
    usage: Usage
    health: Health = "unproven"
    last_good: str | None = None
    dependencies: tuple[Dependency, ...] = ()
    call: str = ""
    mcp_tool: str | None = None
    signature: str = ""
    source_type: SourceType = "code"
    preview: str = ""


DiscoveryHit = Annotated[ToolHit | CapabilityHit, Field(discriminator="type")]


class DiscoveryPage(Contract):
    """Hits, best first, and the total number above `min_score`. `degraded`: found by words alone,
    or without the vector index, because this or the embedding model does not answer. `discovery_id`
    is for the execution that follows; the gateway gives it."""

    hits: tuple[DiscoveryHit, ...]
    total: int = Field(ge=0)
    degraded: bool = False
    discovery_id: UUID | None = None
