"""Contracts of the registry: capabilities, the tool catalog, discovery."""

from typing import Annotated, ClassVar, Literal
from uuid import UUID

from pydantic import Field, StringConstraints

from pml_common.contracts.base import Contract, Event, Query
from pml_common.contracts.caching import CacheSettings
from pml_common.contracts.capability import CapabilityDescription, CapabilityRecord, Usage
from pml_common.contracts.tool import JsonObject, ToolDefinition


class CapabilityChanged(Event):
    """A capability was created, named, first listed, or has new statistics."""

    entity_field: ClassVar[str] = "capability_id"

    capability_id: UUID
    name: str
    change: Literal["created", "named", "listed", "learned"]


class CatalogChanged(Event):
    """A server's tools changed in the tool catalog; readers drop their cached copies."""

    entity_field: ClassVar[str] = "server"

    server: str


class ResolveCapability(Query):
    """Find one capability by name (`fs:ensure`, `cap:fs:ensure`, `unnamed_<hash>`) or by id."""

    reference: str


class SetCachePolicy(Query):
    """Set whether results of a capability are cached; the reply is the updated capability.
    Idempotent."""

    reference: str
    cache: CacheSettings


CapabilityReference = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:-]{1,256}$")]
"""A program's reference to a capability: its id, name, callable name (`fs_ensure`), or callable
name with the last digits of the id (`fs_ensure_1f3e`)."""


class DescribeCapabilities(Query):
    """Find the capabilities that programs refer to."""

    references: Annotated[tuple[CapabilityReference, ...], Field(max_length=64)]


class Reference(Contract):
    """The capability of one reference in the scope, or None; then `near` are similar references of
    the same form."""

    reference: str
    capability: CapabilityDescription | None = None
    near: tuple[str, ...] = ()


class CapabilityDescriptions(Contract):
    """Every reference once, in the order of the query."""

    references: tuple[Reference, ...]


class ListCapabilities(Query):
    """List the capabilities of the scope, the most used first."""

    include_unlisted: bool = False
    limit: int = Field(default=50, ge=1, le=200)
    offset: int = Field(default=0, ge=0)


class CapabilityPage(Contract):
    """One page of capabilities, and the total number."""

    capabilities: tuple[CapabilityRecord, ...]
    total: int = Field(ge=0)


class ListTools(Query):
    """List the scope's tool catalog, or one server's part of it."""

    server: str | None = None


class ToolCatalog(Contract):
    """Tools, sorted by id."""

    tools: tuple[ToolDefinition, ...]


class Discover(Query):
    """Rank tools and capabilities by their match with an intent."""

    intent: Annotated[str, Field(min_length=1, max_length=4000)]
    type: Literal["tool", "capability", "all"] = "all"
    min_score: float = Field(default=0.0, ge=0, le=1)
    limit: int = Field(default=10, ge=1, le=100)
    offset: int = Field(default=0, ge=0)


class ToolHit(Contract):
    """A tool that matches the intent; `score` in [0, 1]."""

    type: Literal["tool"] = "tool"
    id: str
    name: str
    score: float = Field(ge=0, le=1)
    description: str
    input_schema: JsonObject
    output_schema: JsonObject | None = None


class CapabilityHit(Contract):
    """A capability that matches the intent; `score` in [0, 1]."""

    type: Literal["capability"] = "capability"
    id: UUID
    name: str
    score: float = Field(ge=0, le=1)
    description: str
    parameters_schema: JsonObject
    tools_used: tuple[str, ...]
    usage: Usage


DiscoveryHit = Annotated[ToolHit | CapabilityHit, Field(discriminator="type")]


class DiscoveryPage(Contract):
    """Hits, best first, and the total number above `min_score`."""

    hits: tuple[DiscoveryHit, ...]
    total: int = Field(ge=0)
