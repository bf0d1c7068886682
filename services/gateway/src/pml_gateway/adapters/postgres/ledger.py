"""The call ledger in Postgres."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from pydantic import JsonValue, TypeAdapter

from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.scope import Scope
from pml_common.storage.errors import StorageUnavailable
from pml_common.storage.pool import Pool, connection
from pml_common.storage.queries import load_queries, storable
from pml_gateway.adapters.postgres.liveness_lock import lock_of
from pml_gateway.adapters.postgres.rows import key_of, parsed
from pml_gateway.domain.tool_calls.ledger import Entry

_SQL = load_queries("pml_gateway")
_JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)


_MOST_UNANSWERED = 10_000


class PostgresCallLedger:
    """See `ports.CallLedger`.

    A beginning that Postgres did not confirm may be stored all the same. Its call was not made, so
    it is remembered, and the next beginning of that call takes its place.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._unanswered: dict[tuple[Scope, UUID], set[datetime]] = {}

    async def begin(self, call: CallTool, entry: Entry) -> Entry | None:
        """See `ports.CallLedger`."""
        try:
            async with connection(self._pool) as held:
                begun = await held.fetchval(_SQL["begin-call"], *_columns(call, entry))
        except StorageUnavailable:
            self._remember_unanswered(call, entry)
            raise
        known = None if begun is not None else await self.find(call)
        unanswered = self._unanswered.pop((call.scope, call.idempotency_key), ())
        if known is None or known.outcome is not None or known.owner != entry.owner:
            return known
        # The deadline tells our beginnings apart: another one of ours may have made the call.
        if known.deadline in unanswered and await self.take_over(call, entry, known.owner):
            return None
        return known

    def _remember_unanswered(self, call: CallTool, entry: Entry) -> None:
        key = (call.scope, call.idempotency_key)
        self._unanswered.setdefault(key, set()).add(entry.deadline)
        if len(self._unanswered) > _MOST_UNANSWERED:
            del self._unanswered[next(iter(self._unanswered))]

    async def find(self, call: CallTool) -> Entry | None:
        """See `ports.CallLedger`."""
        async with connection(self._pool) as held:
            row = await held.fetchrow(_SQL["get-call"], *_key(call))
        if row is None:
            return None
        outcome = parsed(ToolOutcome, row["outcome"])
        return Entry(row["fingerprint"], row["owner"], row["deadline"], outcome)

    async def take_over(self, call: CallTool, entry: Entry, previous: UUID) -> bool:
        """See `ports.CallLedger`."""
        async with connection(self._pool) as held:
            taken = await held.fetchval(
                _SQL["take-over-call"], *_key(call), previous, entry.owner, entry.deadline
            )
        return taken is not None

    async def settle(self, call: CallTool, entry: Entry, outcome: ToolOutcome) -> ToolOutcome:
        """See `ports.CallLedger`."""
        columns = (*_columns(call, entry), outcome.model_dump_json(), entry.repeatable)
        async with connection(self._pool) as held:
            settled = await held.fetchval(_SQL["settle-call"], *columns)
        known = None if settled is not None else await self.find(call)
        return (known.outcome if known else None) or outcome

    async def results(self, scope: Scope, keys: Sequence[UUID]) -> Mapping[UUID, JsonValue]:
        """See `ports.CallLedger`."""
        async with connection(self._pool) as held:
            rows = await held.fetch(_SQL["get-results"], *key_of(scope), keys)
        return {row["idempotency_key"]: _JSON.validate_json(row["result"]) for row in rows}

    async def lives(self, owner: UUID) -> bool:
        """See `ports.CallLedger`."""
        async with connection(self._pool) as held:
            return await held.fetchval(_SQL["is-present"], lock_of(owner))

    async def forget(self, older_than: datetime) -> None:
        """See `ports.CallLedger`."""
        async with connection(self._pool) as held:
            await held.execute(_SQL["forget-calls"], older_than)


def _key(call: CallTool) -> tuple[str, str, UUID]:
    return (*key_of(call.scope), call.idempotency_key)


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
