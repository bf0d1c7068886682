"""Rows of records in Postgres, as the callers of their store see them."""

from collections.abc import Sequence

import asyncpg

from pml_common.contracts.dns import RecordSummary, VersionSummary
from pml_common.storage.columns import scope_of
from pml_registry.adapters.postgres_rows import JSON_OBJECT, tag_of, usage_of
from pml_registry.domain.cursors import After
from pml_registry.domain.health import reference_to
from pml_registry.domain.names import fqdn_of
from pml_registry.domain.record_changes import StoredChange


def version_summary(row: asyncpg.Record) -> VersionSummary:
    """Parse a version with its use."""
    tag = tag_of(row)
    return VersionSummary(
        version=row["number"],
        version_tag=None if tag is None else str(tag),
        capability_id=row["pattern_id"],
        code_hash=row["code_hash"],
        description=row["description"],
        change_summary=row["change_summary"],
        created_by=row["created_by"],
        created_at=row["created_at"],
        yanked_reason=row["yanked_reason"],
        signature=row["signature"],
        key_id=row["key_id"],
        signed_at=row["signed_at"],
        usage=usage_of(row),
        health=row["health"],
    )


def record_summary(row: asyncpg.Record) -> tuple[After, RecordSummary]:
    """Parse a record of a list, and its place in it."""
    tag, scope = tag_of(row), scope_of(row)
    summary = RecordSummary(
        record_id=row["record_id"],
        fqdn=fqdn_of(scope, row["name"], row["record_id"]),
        name=row["name"],
        scope=scope,
        owner=row["owner"],
        visibility=row["visibility"],
        tags=tuple(row["tags"]),
        version=row["number"],
        version_tag=None if tag is None else str(tag),
        capability_id=row["pattern_id"],
        description=row["description"],
        parameters_schema=None
        if row["parameters_schema"] is None
        else JSON_OBJECT.validate_json(row["parameters_schema"]),
        listed=row["listed"],
        usage=usage_of(row),
        health=row["health"],
        last_good=reference_to(row["name"], row["good_version"]),
        created_by=row["created_by"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )
    return After(row["rank"], row["name"], row["record_id"]), summary


def stored_change(row: asyncpg.Record) -> tuple[StoredChange, Sequence[str]]:
    """Parse a change, with the codes before and after it where it made a version."""
    change = StoredChange(
        sequence=row["sequence"],
        change=row["change"],
        principal=row["principal"],
        at=row["at"],
        version=row["version"],
        tag=tag_of(row),
        details=JSON_OBJECT.validate_json(row["details"]),
        key_id=row["key_id"],
        signed_at=row["signed_at"],
    )
    before = row["code_before"]
    return change, () if before is None else (before, row["code_after"])
