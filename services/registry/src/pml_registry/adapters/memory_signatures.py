"""Signatures of versions in memory; tested by the same suite as the Postgres store."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from typing_extensions import override

from pml_registry.adapters.memory_tables import MemoryTables
from pml_registry.domain.signatures import Signature, StoredVersion, version_in
from pml_registry.ports import SignatureStore


class MemorySignatureStore(SignatureStore):
    """Fields of versions in shared in-memory tables."""

    def __init__(self, tables: MemoryTables) -> None:
        self._tables = tables

    @override
    async def others(
        self, key_id: str, after: StoredVersion | None, limit: int
    ) -> Sequence[StoredVersion]:
        scopes = dict.fromkeys(scope for scope, _ in self._tables.records)
        every = [version_in(record) for scope in scopes for record in self._tables.versions(scope)]
        found = [
            version
            for version in sorted(every, key=_key)
            if (version.signature is None or version.signature.key_id != key_id)
            and (after is None or _key(version) > _key(after))
        ]
        return found[:limit]

    @override
    async def replace(self, version: StoredVersion, signature: Signature) -> None:
        statement = version.statement
        row = self._tables.records[statement.scope, statement.record_id]
        versions = list(row.versions)
        stored = versions[statement.number - 1]
        if (stored.behaviour, stored.signature) == (statement.behaviour, version.signature):
            versions[statement.number - 1] = replace(
                stored, signature=signature, signed_at=datetime.now(UTC)
            )
            changed = replace(row, versions=tuple(versions))
            self._tables.records[statement.scope, statement.record_id] = changed


def _key(version: StoredVersion) -> tuple[str, str, str, int]:
    statement = version.statement
    scope = statement.scope
    return scope.org, scope.project, str(statement.record_id), statement.number
