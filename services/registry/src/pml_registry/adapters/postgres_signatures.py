"""Signatures of versions in Postgres."""

from collections.abc import Sequence
from uuid import UUID

import asyncpg
from typing_extensions import override

from pml_common.contracts.scope import Scope
from pml_common.storage.columns import scope_columns
from pml_common.storage.pool import Connection
from pml_common.storage.queries import load_queries
from pml_common.storage.scoped import ScopedPools
from pml_registry.adapters.postgres_rows import stored_version
from pml_registry.domain.signatures import Signature, StoredVersion, VersionStatement
from pml_registry.ports import SignatureStore, VersionSigning

_SQL = load_queries("pml_registry")
_FIRST = ("", "", UUID(int=0), 0)


async def sign_version(
    session: Connection,
    signing: VersionSigning,
    scope: Scope,
    record_id: UUID,
    number: int,
    behaviour: UUID,
) -> None:
    """Sign a version of an existing behaviour that this transaction has inserted: every insertion
    of one is followed by this. Raises VersionRefused where the stored code is not the
    behaviour's."""
    row = await session.fetchrow(_SQL["behaviour-code"], *scope_columns(scope), behaviour)
    if row is None:
        raise LookupError(f"{scope} has no behaviour {behaviour}")
    statement = VersionStatement(scope, record_id, number, behaviour, row["code_hash"], row["code"])
    await _store(session, StoredVersion(statement, None), await signing.sign(statement))


class PostgresSignatureStore(SignatureStore):
    """Columns of `capability_versions`."""

    def __init__(self, pools: ScopedPools) -> None:
        self._pools = pools

    @override
    async def others(
        self, key_id: str, after: StoredVersion | None, limit: int
    ) -> Sequence[StoredVersion]:
        begin = _FIRST if after is None else _key(after.statement)
        async with self._pools.across() as session:
            rows = await session.fetch(_SQL["versions-of-other-keys"], key_id, *begin, limit)
        return [stored_version(row) for row in rows]

    @override
    async def replace(self, version: StoredVersion, signature: Signature) -> None:
        async with self._pools.across() as session:
            await _store(session, version, signature)


def _key(statement: VersionStatement) -> tuple[str, str, UUID, int]:
    return (*scope_columns(statement.scope), statement.record_id, statement.number)


async def _store(
    session: Connection | asyncpg.Connection, version: StoredVersion, signature: Signature
) -> None:
    statement, before = version.statement, version.signature
    await session.execute(
        _SQL["sign-version"],
        *_key(statement),
        statement.behaviour,
        None if before is None else before.value,
        signature.key_id,
        signature.value,
    )
