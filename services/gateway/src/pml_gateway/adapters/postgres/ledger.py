"""The call ledger in Postgres."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from pydantic import JsonValue, TypeAdapter
from typing_extensions import override

from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.scope import Scope
from pml_common.storage.columns import columns, scope_columns
from pml_common.storage.errors import StorageUnavailable
from pml_common.storage.queries import load_queries, storable
from pml_common.storage.scoped import ScopedPools
from pml_gateway.adapters.postgres.liveness_lock import lock_of
from pml_gateway.adapters.postgres.rows import from_json, to_json
from pml_gateway.domain.tool_calls.ledger import Entry
from pml_gateway.ports import CallLedger

_SQL = load_queries("pml_gateway")
_JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)


_MOST_UNCONFIRMED = 10_000


class PostgresCallLedger(CallLedger):
    """The call ledger in schema `gateway`.

    A beginning that Postgres did not confirm may be stored all the same. Its call was not made, so
    it is kept in memory, and the next beginning of that call replaces it.
    """

    def __init__(self, pools: ScopedPools) -> None:
        self._pools = pools
        self._unconfirmed: dict[tuple[Scope, UUID], set[datetime]] = {}

    @override
    async def begin(self, call: CallTool, entry: Entry) -> Entry | None:
        try:
            columns = (*_columns(call, entry), entry.replaces)
            begun = await self._pools.change_at_once(call.scope, _SQL["begin-call"], *columns)
        except StorageUnavailable:
            self._add_unconfirmed(call, entry)
            raise
        known = None if begun is not None else await self.find(call)
        unconfirmed = self._unconfirmed.pop((call.scope, call.idempotency_key), ())
        if known is None or known.outcome is not None or known.owner != entry.owner:
            return known
        # The deadline identifies the beginning: another one of this process may have made the call.
        if known.deadline in unconfirmed and await self.take_over(call, entry, known.owner):
            return None
        return known

    def _add_unconfirmed(self, call: CallTool, entry: Entry) -> None:
        key = (call.scope, call.idempotency_key)
        self._unconfirmed.setdefault(key, set()).add(entry.deadline)
        if len(self._unconfirmed) > _MOST_UNCONFIRMED:
            del self._unconfirmed[next(iter(self._unconfirmed))]

    @override
    async def find(self, call: CallTool) -> Entry | None:
        row = await self._pools.fetchrow(call.scope, _SQL["get-call"], *_key(call))
        if row is None:
            return None
        outcome = from_json(ToolOutcome, row["outcome"])
        return Entry(row["fingerprint"], row["owner"], row["deadline"], outcome, tool=row["tool"])

    @override
    async def take_over(self, call: CallTool, entry: Entry, previous: UUID) -> bool:
        columns = *_key(call), previous, entry.owner, entry.deadline
        taken = await self._pools.change(call.scope, _SQL["take-over-call"], *columns)
        return taken is not None

    @override
    async def settle(self, call: CallTool, entry: Entry, outcome: ToolOutcome) -> ToolOutcome:
        outcome_columns = (outcome.model_dump_json(), entry.repeatable, entry.replaces)
        columns = (*_columns(call, entry), *outcome_columns)
        settled = await self._pools.change_at_once(call.scope, _SQL["settle-call"], *columns)
        known = None if settled is not None else await self.find(call)
        if known is None or known.fingerprint != entry.fingerprint:
            return outcome
        return known.outcome or outcome

    @override
    async def add(self, calls: Sequence[tuple[CallTool, Entry]]) -> None:
        rows = [(*_columns(*each), to_json(each[1].outcome)) for each in calls]
        async with self._pools.across() as conn:
            await conn.execute(_SQL["add-calls"], *columns(rows, 11))

    @override
    async def results(self, scope: Scope, keys: Sequence[UUID]) -> Mapping[UUID, JsonValue]:
        rows = await self._pools.fetch(scope, _SQL["get-results"], *scope_columns(scope), keys)
        return {row["idempotency_key"]: _JSON.validate_json(row["result"]) for row in rows}

    @override
    async def lives(self, owner: UUID) -> bool:
        async with self._pools.across() as conn:
            return await conn.fetchval(_SQL["is-present"], lock_of(owner))

    @override
    async def forget(self, older_than: datetime) -> None:
        async with self._pools.across() as conn:
            await conn.execute(_SQL["forget-calls"], older_than)


def _key(call: CallTool) -> tuple[str, str, UUID]:
    return (*scope_columns(call.scope), call.idempotency_key)


def _columns(call: CallTool, entry: Entry) -> tuple[object, ...]:
    return (
        *_key(call),
        call.workflow_id,
        storable(call.node_id),
        call.occurrence,
        storable(call.tool),
        entry.fingerprint,
        entry.owner,
        entry.deadline,
    )
