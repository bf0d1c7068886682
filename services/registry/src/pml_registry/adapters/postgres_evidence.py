"""Evidence in Postgres, schema `registry`."""

from collections.abc import Sequence
from uuid import UUID

import asyncpg
import numpy as np
from pydantic import TypeAdapter
from typing_extensions import override

from pml_common.contracts import catalog
from pml_common.contracts.scope import Scope
from pml_common.storage import inbox
from pml_common.storage.columns import scope_columns, scope_of
from pml_common.storage.pool import Connection
from pml_common.storage.queries import load_queries, storable
from pml_common.storage.scoped import ScopedPools
from pml_registry.domain.evidence import MOST_USES, Use, opinion_weight, surplus
from pml_registry.domain.ranking import Target
from pml_registry.domain.trials import Quality, Standing, Trial
from pml_registry.ports.evidence import (
    EvidenceStore,
    IntentVector,
    Judge,
    NewUse,
    Opinions,
    Stand,
    StoredUse,
)

_SQL = load_queries("pml_registry")
_CONSUMER = catalog.REGISTRY_ON_USES_OBSERVED.durable
_STANDING = TypeAdapter(Standing)
_FLOATS = np.dtype("<f4")


class PostgresEvidenceStore(EvidenceStore):
    """Everything that changes a scope's evidence locks its state."""

    def __init__(self, pools: ScopedPools, most_uses: int = MOST_USES) -> None:
        self._pools = pools
        self._most_uses = most_uses

    @override
    async def learn(
        self, scope: Scope, message_id: UUID, uses: Sequence[NewUse], judge: Judge
    ) -> None:
        opened, where = self._pools.transaction(scope), scope_columns(scope)
        async with inbox.once_in(opened, message_id, _CONSUMER) as entry:
            if entry.replayed is not None:
                return
            session = entry.connection
            before = await _locked(session, scope)
            first = before.sequence + 1
            for sequence, use in enumerate(uses, first):
                await session.execute(_SQL["save-use"], *where, *_columns(sequence, use))
            rows = await session.fetch(_SQL["evidence-trials"], *where)
            dropped = set(
                surplus([(row["principal"], row["sequence"]) for row in rows], self._most_uses)
            )
            if dropped:
                await session.execute(_SQL["drop-uses"], *where, sorted(dropped))
            standing = judge(
                [
                    _trial(row)
                    for row in rows
                    if row["ndcg_with"] is not None and row["sequence"] not in dropped
                ],
                before.standing,
            )
            await session.execute(
                _SQL["save-evidence"],
                *where,
                before.sequence + len(uses),
                before.reset + bool(dropped),
                standing.used,
                _STANDING.dump_json(standing).decode(),
            )
            entry.conclude(())

    @override
    async def stand(self, scope: Scope) -> Stand:
        row = await self._pools.fetchrow(scope, _SQL["evidence-stand"], *scope_columns(scope))
        return Stand() if row is None else _stand(row)

    @override
    async def uses(self, scope: Scope, after: int) -> Sequence[StoredUse]:
        where = scope_columns(scope)
        rows = await self._pools.fetch(scope, _SQL["evidence-uses"], *where, after)
        return [_stored(row) for row in rows]

    @override
    async def opine(self, scope: Scope, opinions: Opinions) -> None:
        where = scope_columns(scope)
        said = opinions.useful, opinions.not_useful, opinions.judged_at
        async with self._pools.transaction(scope) as session:
            await _locked(session, scope)
            await session.execute(_SQL["save-opinion"], *where, opinions.workflow_id, *said)
            await session.execute(_SQL["drop-opinions"], *where, self._most_uses - 1)
            await session.execute(_SQL["reset-evidence"], *where)

    @override
    async def erase(self, scope: Scope, workflow_id: UUID) -> None:
        where = scope_columns(scope)
        async with self._pools.transaction(scope) as session:
            await _locked(session, scope)
            for step in ("note-deleted-workflow", "erase-use", "erase-opinion"):
                await session.execute(_SQL[step], *where, workflow_id)
            await session.execute(_SQL["reset-evidence"], *where)

    @override
    async def outdated(self, model: str, limit: int) -> Sequence[tuple[Scope, StoredUse]]:
        async with self._pools.across() as session:
            rows = await session.fetch(_SQL["outdated-uses"], model, limit)
        return [(scope_of(row), _stored(row)) for row in rows]

    @override
    async def embed(self, scope: Scope, use: StoredUse, model: str, vector: IntentVector) -> None:
        where = scope_columns(scope)
        key = use.use_id, use.sequence
        async with self._pools.transaction(scope) as session:
            await _locked(session, scope)
            await session.execute(_SQL["embed-use"], *where, *key, model, _bytes(vector))
            await session.execute(_SQL["reset-evidence"], *where)


async def _locked(session: Connection, scope: Scope) -> Stand:
    """Lock the state of a scope, which is made if it is not there."""
    where = scope_columns(scope)
    await session.execute(_SQL["meet-evidence"], *where)
    row = await session.fetchrow(_SQL["lock-evidence"], *where)
    return Stand() if row is None else _stand(row)


def _stand(row: asyncpg.Record) -> Stand:
    return Stand(_STANDING.validate_json(row["standing"]), row["sequence"], row["reset"])


def _columns(sequence: int, new: NewUse) -> tuple[object, ...]:
    use, trial = new.use, new.trial
    ranked = (None,) * 4
    if trial is not None:
        without, with_ = trial.without, trial.with_evidence
        ranked = without.ndcg, without.recall, with_.ndcg, with_.recall
    return (
        *(new.use_id, sequence, new.workflow_id, use.principal, storable(use.intent)),
        [storable(target.id) for target in use.served if target.kind == "tool"],
        [target.id for target in use.served if target.kind == "capability"],
        *(use.hour, new.model, _bytes(new.vector)),
        *ranked,
    )


def _stored(row: asyncpg.Record) -> StoredUse:
    served = (
        *(Target("tool", id_) for id_ in row["tools"]),
        *(Target("capability", id_) for id_ in row["capabilities"]),
    )
    weight = opinion_weight(row["useful"], row["not_useful"])
    use = Use(row["principal"], row["intent"], served, row["hour"], weight, row["measured"])
    vector = np.frombuffer(row["embedding"], _FLOATS)
    return StoredUse(row["use_id"], row["sequence"], use, row["model"], vector)


def _trial(row: asyncpg.Record) -> Trial:
    return Trial(
        row["principal"],
        Quality(row["ndcg_without"], row["recall_without"]),
        Quality(row["ndcg_with"], row["recall_with"]),
    )


def _bytes(vector: IntentVector) -> bytes:
    return np.asarray(vector, _FLOATS).tobytes()
