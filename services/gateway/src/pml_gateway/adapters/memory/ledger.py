"""The call ledger in memory; passes the same contract suite as the one in Postgres."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from pydantic import JsonValue
from typing_extensions import override

from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.scope import Scope
from pml_gateway.domain.tool_calls.ledger import Entry
from pml_gateway.ports import CallLedger


class MemoryCallLedger(CallLedger):
    def __init__(self) -> None:
        self.entries: dict[tuple[Scope, UUID], Entry] = {}
        self.alive: set[UUID] = set()
        self._workflows: dict[tuple[Scope, UUID], UUID] = {}

    def erase(self, scope: Scope, workflow_id: UUID) -> None:
        """Delete the calls of a workflow."""
        for key in [key for key in self.entries if key[0] == scope]:
            if self._workflows.get(key) == workflow_id:
                del self.entries[key]

    @override
    async def begin(self, call: CallTool, entry: Entry) -> Entry | None:
        known = self.entries.get(_key(call))
        if known is not None and known.fingerprint != entry.replaces:
            return known
        self.entries[_key(call)] = self._stored(call, entry)
        return None

    @override
    async def find(self, call: CallTool) -> Entry | None:
        return self.entries.get(_key(call))

    @override
    async def take_over(self, call: CallTool, entry: Entry, previous: UUID) -> bool:
        known = self.entries.get(_key(call))
        if known is None or known.owner != previous or known.outcome is not None:
            return False
        self.entries[_key(call)] = replace(known, owner=entry.owner, deadline=entry.deadline)
        return True

    @override
    async def settle(self, call: CallTool, entry: Entry, outcome: ToolOutcome) -> ToolOutcome:
        known = self.entries.get(_key(call))
        if known is not None and known.fingerprint != entry.replaces:
            if known.fingerprint != entry.fingerprint:
                return outcome
            if known.outcome is not None:
                return known.outcome
        self.entries[_key(call)] = replace(self._stored(call, entry), outcome=outcome)
        return outcome

    @override
    async def add(self, calls: Sequence[tuple[CallTool, Entry]]) -> None:
        for call, entry in calls:
            self.entries.setdefault(_key(call), self._stored(call, entry))

    @override
    async def results(self, scope: Scope, keys: Sequence[UUID]) -> Mapping[UUID, JsonValue]:
        entries = {key: self.entries.get((scope, key)) for key in keys}
        outcomes = {key: entry.outcome for key, entry in entries.items() if entry is not None}
        return {key: one.result for key, one in outcomes.items() if one and one.status == "ok"}

    @override
    async def lives(self, owner: UUID) -> bool:
        return owner in self.alive

    @override
    async def forget(self, older_than: datetime) -> None:
        for key, entry in list(self.entries.items()):
            if entry.deadline < older_than:
                del self.entries[key]

    def _stored(self, call: CallTool, entry: Entry) -> Entry:
        self._workflows[_key(call)] = call.workflow_id
        return replace(entry, tool=call.tool, replaces=None)


def _key(call: CallTool) -> tuple[Scope, UUID]:
    return call.scope, call.idempotency_key
