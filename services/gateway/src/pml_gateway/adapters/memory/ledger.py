"""The call ledger in memory; the twin of the one in Postgres, under the same suite."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from pydantic import JsonValue

from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.scope import Scope
from pml_gateway.domain.tool_calls.ledger import Entry


class MemoryCallLedger:
    """See `ports.CallLedger`."""

    def __init__(self) -> None:
        self.entries: dict[tuple[Scope, UUID], Entry] = {}
        self.alive: set[UUID] = set()

    async def begin(self, call: CallTool, entry: Entry) -> Entry | None:
        """See `ports.CallLedger`."""
        known = self.entries.setdefault(_key(call), entry)
        return None if known is entry else known

    async def find(self, call: CallTool) -> Entry | None:
        """See `ports.CallLedger`."""
        return self.entries.get(_key(call))

    async def take_over(self, call: CallTool, entry: Entry, previous: UUID) -> bool:
        """See `ports.CallLedger`."""
        known = self.entries.get(_key(call))
        if known is None or known.owner != previous or known.outcome is not None:
            return False
        self.entries[_key(call)] = replace(known, owner=entry.owner, deadline=entry.deadline)
        return True

    async def settle(self, call: CallTool, entry: Entry, outcome: ToolOutcome) -> ToolOutcome:
        """See `ports.CallLedger`."""
        known = self.entries.setdefault(_key(call), entry)
        self.entries[_key(call)] = replace(known, outcome=known.outcome or outcome)
        return known.outcome or outcome

    async def results(self, scope: Scope, keys: Sequence[UUID]) -> Mapping[UUID, JsonValue]:
        """See `ports.CallLedger`."""
        entries = {key: self.entries.get((scope, key)) for key in keys}
        outcomes = {key: entry.outcome for key, entry in entries.items() if entry is not None}
        return {key: one.result for key, one in outcomes.items() if one and one.status == "ok"}

    async def lives(self, owner: UUID) -> bool:
        """See `ports.CallLedger`."""
        return owner in self.alive

    async def forget(self, older_than: datetime) -> None:
        """See `ports.CallLedger`."""
        for key, entry in list(self.entries.items()):
            if entry.deadline < older_than:
                del self.entries[key]


def _key(call: CallTool) -> tuple[Scope, UUID]:
    return call.scope, call.idempotency_key
