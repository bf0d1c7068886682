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
from pml_common.contracts.references import Tag
from pml_common.contracts.source import CapabilitySource, FromCode
from pml_common.contracts.structure import StaticStructure
from pml_common.contracts.tool import JsonObject, QuarantinedTool, ToolDefinition
from pml_common.storage.columns import scope_columns, scope_of
from pml_registry.domain.health import reference_to
from pml_registry.domain.listing import Listing, StoredCapability
from pml_registry.domain.names import fqdn_of
from pml_registry.domain.record_views import Presented
from pml_registry.domain.signatures import StoredVersion, VersionStatement, signature_of
from pml_registry.domain.tool_catalog import KnownTool, LearnedOutput, with_output
from pml_registry.domain.versions import Version
from pml_registry.ports import BehaviourTexts, Described

JSON_OBJECT: TypeAdapter[JsonObject] = TypeAdapter(JsonObject)
_SOURCE: TypeAdapter[CapabilitySource] = TypeAdapter(CapabilitySource)
QUARANTINED: TypeAdapter[tuple[QuarantinedTool, ...]] = TypeAdapter(tuple[QuarantinedTool, ...])


def source_column(source: CapabilitySource | None) -> str | None:
    """Write the column `source`; None for code."""
    return None if source is None else _SOURCE.dump_json(source).decode()


def _source_of(row: asyncpg.Record) -> CapabilitySource:
    return FromCode() if row["source"] is None else _SOURCE.validate_json(row["source"])


def usage_of(row: asyncpg.Record) -> Usage:
    """Parse columns of `capability_usage`."""
    return Usage(
        count=row["usage_count"],
        success_count=row["success_count"],
        success_streak=row["success_streak"],
        mean_duration_ms=row["mean_duration_ms"],
        caller_faults=row["caller_faults"],
        environment_faults=row["environment_faults"],
        value=row["success_value"],
        low=row["success_low"],
        high=row["success_high"],
    )


def tag_of(row: asyncpg.Record) -> Tag | None:
    """Parse the column `tag`."""
    return None if row["tag"] is None else Tag(tuple(row["tag"]))


def version_of(row: asyncpg.Record) -> Version:
    """Parse a row of `capability_versions`, with its behaviour's health."""
    tag, yanked = tag_of(row), row["yanked_reason"]
    health, description = row["health"], row["description"]
    return Version(row["number"], row["created_at"], tag, yanked, health, description)


def capability_record(row: asyncpg.Record) -> CapabilityRecord:
    """Parse a row of the view `capability_version`."""
    tag, scope = tag_of(row), scope_of(row)
    return CapabilityRecord(
        record_id=row["record_id"],
        capability_id=row["pattern_id"],
        scope=scope,
        fqdn=fqdn_of(scope, row["name"], row["record_id"]),
        name=row["name"],
        aliases=tuple(row["aliases"]),
        named=row["named"],
        version=row["number"],
        version_tag=None if tag is None else str(tag),
        yanked_reason=row["yanked_reason"],
        signature=row["signature"],
        key_id=row["key_id"],
        owner=row["owner"],
        visibility=row["visibility"],
        tags=tuple(row["tags"]),
        forked_from=row["forked_from"],
        listed=row["listed"],
        code=row["code"],
        code_hash=row["code_hash"],
        source=_source_of(row),
        description=row["description"],
        parameters_schema=JSON_OBJECT.validate_json(row["parameters_schema"]),
        structure=StaticStructure.model_validate_json(row["structure"]),
        tools_used=tuple(row["tools_used"]),
        usage=usage_of(row),
        health=row["health"],
        last_good=reference_to(row["name"], row["good_version"]),
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


def presented_capability(row: asyncpg.Record) -> Presented:
    """Parse the columns of the view `capability` that hits show."""
    return Presented(
        capability_id=row["pattern_id"],
        name=row["name"],
        description=row["description"],
        parameters_schema=JSON_OBJECT.validate_json(row["parameters_schema"]),
        tools_used=tuple(row["tools_used"]),
        usage=usage_of(row),
        source=_source_of(row),
        code=row["code"],
        health=row["health"],
        last_good=reference_to(row["name"], row["good_version"]),
    )


def stored_version(row: asyncpg.Record) -> StoredVersion:
    """Parse the signed columns of a version and its behaviour."""
    statement = VersionStatement(
        scope=scope_of(row),
        record_id=row["record_id"],
        number=row["number"],
        behaviour=row["pattern_id"],
        code_hash=row["code_hash"],
        code=row["code"],
    )
    return StoredVersion(statement, signature_of(row["key_id"], row["signature"]))


def described(row: asyncpg.Record) -> Described:
    """Parse a row of the view `capability_version`, or its described columns."""
    description = CapabilityDescription(
        capability_id=row["pattern_id"],
        name=row["name"],
        aliases=tuple(row["aliases"]),
        code=row["code"],
        code_hash=row["code_hash"],
        description=row["description"],
        parameters_schema=JSON_OBJECT.validate_json(row["parameters_schema"]),
    )
    good = reference_to(row["name"], row["good_version"])
    return Described(description, stored_version(row), usage_of(row), row["health"], good)


def behaviour_texts(row: asyncpg.Record) -> BehaviourTexts:
    """Parse the texts of a row of the view `capability_version`."""
    return BehaviourTexts(
        row["name"],
        row["description"],
        row["tools_used"],
        JSON_OBJECT.validate_json(row["parameters_schema"]),
    )


def stored_capability(row: asyncpg.Record) -> StoredCapability:
    """Parse the mutable part of a row of the view `capability_version`."""
    return StoredCapability(
        name=row["name"],
        named=row["named"],
        listed=row["listed"],
        learning_revision=row["learning_revision"],
        makes_calls=row["makes_calls"],
        is_variant=row["is_variant"],
        health=row["health"],
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
        updated.usage.success_streak,
        updated.usage.mean_duration_ms,
        updated.usage.caller_faults,
        updated.usage.environment_faults,
        updated.usage.value,
        updated.usage.low,
        updated.usage.high,
        listing.health,
        updated.learning.model_dump_json(),
        updated.revision,
        listing.listed,
        before.learning_revision,
        before.name,
    )


def tool_definition(row: asyncpg.Record) -> ToolDefinition:
    """Parse a row of `tool_schema`."""
    return ToolDefinition.model_validate_json(row["definition"])


def listed_tool(row: asyncpg.Record) -> ToolDefinition:
    """Parse a row of `tool_schema`, with its learned output."""
    shape = row["shape"]
    known = None if shape is None else JSON_OBJECT.validate_json(shape)
    return with_output(tool_definition(row), known)


def quarantined_tools(rows: Sequence[asyncpg.Record]) -> list[QuarantinedTool]:
    """Parse the column `quarantined` of rows of `tool_server`."""
    return [tool for row in rows for tool in QUARANTINED.validate_json(row["quarantined"])]


def learned_outputs(rows: Sequence[asyncpg.Record]) -> dict[str, LearnedOutput]:
    """Parse rows of `tool_output`, by tool id."""
    return {
        row["tool_id"]: LearnedOutput(
            row["definition_hash"], JSON_OBJECT.validate_json(row["shape"])
        )
        for row in rows
    }


def known_tools(rows: Sequence[asyncpg.Record]) -> dict[str, KnownTool]:
    """Parse rows of `tool_schema`, by tool id."""
    return {row["tool_id"]: KnownTool(row["definition_hash"], tuple(row["models"])) for row in rows}
