"""Conversion between rows of schema `registry` and contracts."""

from collections.abc import Sequence

import asyncpg
from pydantic import TypeAdapter

from pml_common.contracts.caching import CachePolicy
from pml_common.contracts.capability import (
    CapabilityDescription,
    CapabilityRecord,
    Learning,
    Usage,
)
from pml_common.contracts.learner import LearningUpdated
from pml_common.contracts.structure import StaticStructure
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_common.storage.columns import scope_columns, scope_of
from pml_registry.domain.listing import Listing, StoredCapability
from pml_registry.domain.tool_catalog import KnownTool

JSON_OBJECT: TypeAdapter[JsonObject] = TypeAdapter(JsonObject)


def capability_record(row: asyncpg.Record) -> CapabilityRecord:
    """Parse a row of the view `capability`."""
    return CapabilityRecord(
        capability_id=row["pattern_id"],
        scope=scope_of(row),
        name=row["name"],
        aliases=tuple(row["aliases"]),
        named=row["named"],
        listed=row["listed"],
        code=row["code"],
        code_hash=row["code_hash"],
        description=row["description"],
        parameters_schema=JSON_OBJECT.validate_json(row["parameters_schema"]),
        structure=StaticStructure.model_validate_json(row["structure"]),
        tools_used=tuple(row["tools_used"]),
        usage=Usage(
            count=row["usage_count"],
            success_count=row["success_count"],
            mean_duration_ms=row["mean_duration_ms"],
        ),
        learning=Learning.model_validate_json(row["learning"]),
        cache=CachePolicy(
            policy=row["cache_policy"],
            ttl_s=row["cache_ttl_s"],
            force=row["cache_forced"],
            revision=row["cache_revision"],
        ),
        created_by=row["created_by"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


def capability_description(row: asyncpg.Record) -> CapabilityDescription:
    """Parse a row of the view `capability`, or its described columns."""
    return CapabilityDescription(
        capability_id=row["pattern_id"],
        name=row["name"],
        aliases=tuple(row["aliases"]),
        code=row["code"],
        code_hash=row["code_hash"],
        description=row["description"],
        parameters_schema=JSON_OBJECT.validate_json(row["parameters_schema"]),
    )


def stored_capability(row: asyncpg.Record) -> StoredCapability:
    """Parse the mutable part of a row of the view `capability`."""
    return StoredCapability(
        name=row["name"],
        named=row["named"],
        listed=row["listed"],
        description=row["description"],
        tools_used=tuple(row["tools_used"]),
        learning_revision=row["learning_revision"],
    )


def learning_columns(
    updated: LearningUpdated, listing: Listing, before: StoredCapability
) -> tuple[object, ...]:
    """A capability's key, its new statistics and listing, and the state it must still have."""
    return (
        *scope_columns(updated.scope),
        updated.capability_id,
        updated.usage.count,
        updated.usage.success_count,
        updated.usage.mean_duration_ms,
        updated.learning.model_dump_json(),
        updated.revision,
        listing.listed,
        before.learning_revision,
        before.name,
    )


def tool_definition(row: asyncpg.Record) -> ToolDefinition:
    """Parse a row of `tool_schema`."""
    return ToolDefinition.model_validate_json(row["definition"])


def known_tools(rows: Sequence[asyncpg.Record]) -> dict[str, KnownTool]:
    """Parse rows of `tool_schema`, by tool id."""
    return {
        row["tool_id"]: KnownTool(row["definition_hash"], row["embedding_model"]) for row in rows
    }
