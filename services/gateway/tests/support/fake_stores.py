"""Stores for tests of what is built on them, each a thin dict behind its port.

What depends on lists, joining, retention or deletion is tested on Postgres: tests/rest,
tests/contract.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from pydantic import JsonValue
from typing_extensions import override

from pml_common.contracts.base import Event, Message
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition
from pml_gateway.domain.api.list_cursors import After
from pml_gateway.domain.api.views import ApprovalPage, WorkflowPage, summary_of, workflows_of
from pml_gateway.domain.tool_calls.ledger import Entry
from pml_gateway.domain.workflow.workflow import Step, Workflow, run_ended
from pml_gateway.ports import AcceptedTools, CallLedger, Outbox, Outgoing, Taken, WorkflowStore


class FakeOutbox(Outbox):
    """Messages are due as soon as they are put."""

    def __init__(self) -> None:
        self.kept: dict[UUID, Outgoing] = {}

    def put(self, message: Message, traceparent: str | None) -> None:
        """Add a message; `traceparent` is its trace context."""
        self.kept[message.message_id] = Outgoing(message, traceparent)

    @override
    async def claim(self, limit: int) -> Sequence[Outgoing]:
        return list(self.kept.values())[:limit]

    @override
    async def drop(self, message_ids: Sequence[UUID]) -> None:
        for key in message_ids:
            self.kept.pop(key, None)


class FakeWorkflows(WorkflowStore):
    def __init__(self) -> None:
        self.outbox = FakeOutbox()
        self.kept: dict[tuple[Scope, UUID], Workflow] = {}
        self._handled: dict[tuple[UUID, str], Sequence[Message]] = {}

    @override
    async def accept(
        self, workflow: Workflow, effects: Sequence[Message], join_at: datetime | None = None
    ) -> Workflow | None:
        known = self.kept.setdefault((workflow.scope, workflow.workflow_id), workflow)
        if known is not workflow:
            return known
        for message in effects:
            self.outbox.put(message, workflow.traceparent)
        return None

    @override
    async def add(self, workflows: Sequence[Workflow]) -> Set[tuple[Scope, UUID]]:
        new = {(each.scope, each.workflow_id): each for each in workflows}
        added = new.keys() - self.kept.keys()
        self.kept = new | self.kept
        return added

    @override
    async def step_once(
        self, cause: Event, consumer: str, workflow_id: UUID, step: Callable[[Workflow], Step]
    ) -> Taken | None:
        before = self.kept.get((cause.scope, workflow_id))
        handled = self._handled.get((cause.event_id, consumer))
        if before is None or handled is not None:
            return before and Taken(handled or (), None)
        after, effects = step(before)
        if after is not before:
            self.kept[cause.scope, workflow_id] = after
            self._handled[cause.event_id, consumer] = effects
        return Taken(effects, after)

    @override
    async def change(
        self, scope: Scope, workflow_id: UUID, step: Callable[[Workflow], Step]
    ) -> Step | None:
        before = self.kept.get((scope, workflow_id))
        if before is None:
            return None
        after, effects = step(before)
        self.kept[scope, workflow_id] = after
        for message in effects:
            self.outbox.put(message, after.traceparent)
        return after, effects

    @override
    async def end(self, runs: Sequence[RunFinished]) -> Sequence[Workflow]:
        ended = {
            key: run_ended(before, run)
            for run in runs
            if (before := self.kept.get(key := (run.scope, run.workflow_id))) is not None
        }
        self.kept |= ended
        return list(ended.values())

    @override
    def latest(self, scope: Scope, workflow_id: UUID) -> Workflow | None:
        return self.kept.get((scope, workflow_id))

    @override
    async def get(self, scope: Scope, workflow_id: UUID) -> Workflow | None:
        return self.kept.get((scope, workflow_id))

    @override
    async def page(
        self, scope: Scope, limit: int, offset: int, after: After | None = None
    ) -> WorkflowPage:
        return workflows_of(list(map(summary_of, self.kept.values())), len(self.kept), limit)

    @override
    async def joinable(self, scope: Scope, call_digest: str) -> Workflow | None:
        return None

    @override
    async def deliver(self, scope: Scope, workflow_id: UUID) -> None:
        """Change nothing: no call joins a workflow here."""

    @override
    async def waiting(
        self, scope: Scope, limit: int, offset: int, after: After | None = None
    ) -> ApprovalPage:
        raise NotImplementedError

    @override
    async def forget(self, ended_before: datetime, limit: int) -> int:
        raise NotImplementedError

    @override
    async def due(self, scope: Scope, now: datetime, limit: int) -> Sequence[UUID]:
        due = [each for each in self.kept.values() if each.due_at and each.due_at <= now]
        return [each.workflow_id for each in due if each.scope == scope]


class FakeLedger(CallLedger):
    def __init__(self) -> None:
        self.entries: dict[tuple[Scope, UUID], Entry] = {}
        self.alive: set[UUID] = set()

    @override
    async def begin(self, call: CallTool, entry: Entry) -> Entry | None:
        known = self.entries.get(_key(call))
        if known is not None and known.fingerprint != entry.replaces:
            return known
        self.entries[_key(call)] = replace(entry, tool=call.tool, replaces=None)
        return None

    @override
    async def find(self, call: CallTool) -> Entry | None:
        return self.entries.get(_key(call))

    @override
    async def take_over(self, call: CallTool, entry: Entry, previous: UUID) -> bool:
        known = self.entries[_key(call)]
        self.entries[_key(call)] = replace(known, owner=entry.owner, deadline=entry.deadline)
        return known.owner == previous

    @override
    async def settle(self, call: CallTool, entry: Entry, outcome: ToolOutcome) -> ToolOutcome:
        known = self.entries.get(_key(call))
        if known is not None and known.fingerprint != entry.replaces:
            if known.fingerprint != entry.fingerprint:
                return outcome
            if known.outcome is not None:
                return known.outcome
        self.entries[_key(call)] = replace(entry, tool=call.tool, replaces=None, outcome=outcome)
        return outcome

    @override
    async def add(self, calls: Sequence[tuple[CallTool, Entry]]) -> None:
        raise NotImplementedError

    @override
    async def results(self, scope: Scope, keys: Sequence[UUID]) -> Mapping[UUID, JsonValue]:
        entries = {key: self.entries.get((scope, key)) for key in keys}
        outcomes = {key: entry.outcome for key, entry in entries.items() if entry is not None}
        return {key: one.result for key, one in outcomes.items() if one and one.status == "ok"}

    @override
    async def forget(self, older_than: datetime) -> None:
        raise NotImplementedError

    @override
    async def lives(self, owner: UUID) -> bool:
        return owner in self.alive


def _key(call: CallTool) -> tuple[Scope, UUID]:
    return call.scope, call.idempotency_key


class FakeAcceptedTools(AcceptedTools):
    def __init__(self) -> None:
        self._accepted: dict[tuple[Scope, str], ToolDefinition] = {}

    @override
    async def meet(
        self, scope: Scope, tools: Sequence[ToolDefinition], at: datetime
    ) -> Sequence[ToolDefinition]:
        return [self._accepted.setdefault((scope, tool.tool_id), tool) for tool in tools]

    @override
    async def accept(
        self, scope: Scope, tools: Sequence[ToolDefinition], by: str, at: datetime
    ) -> None:
        self._accepted.update({(scope, tool.tool_id): tool for tool in tools})
