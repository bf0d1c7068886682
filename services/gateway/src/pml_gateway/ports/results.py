"""Waits for workflows, and the results of calls and workflows."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol
from uuid import UUID

from pydantic import JsonValue

from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_common.contracts.scope import Scope
from pml_gateway.domain.tool_calls.ledger import Entry
from pml_gateway.domain.workflow.result_cache import CachedResult, ResultKey
from pml_gateway.domain.workflow.workflow import Workflow


class Waiter(Protocol):
    """One caller's wait for a workflow."""

    @property
    def over(self) -> bool:
        """Whether no more notifications will come."""
        ...

    async def wait(self, timeout_s: float) -> Workflow | None:
        """Wait for a notification; return the workflow's state, or None where the caller has to
        read it from the store."""
        ...


class Notifier(Protocol):
    """Notifies callers that wait for workflows in this process."""

    def subscribe(self, scope: Scope, workflow_id: UUID) -> AbstractContextManager[Waiter]:
        """Receive notifications when a workflow ends or needs approval, until the block exits."""
        ...

    def is_awaited(self, scope: Scope, workflow_id: str) -> bool:
        """Whether a caller waits for this workflow."""
        ...

    def notify(self, workflow: Workflow) -> None:
        """Wake the callers that wait for a workflow, with its present state."""
        ...


class CallLedger(Protocol):
    """Stores the state of tool calls by idempotency key. Every method may raise
    StorageUnavailable."""

    async def begin(self, call: CallTool, entry: Entry) -> Entry | None:
        """Store that a call begins and return None; where its key is taken, and not by what the
        entry replaces, store nothing and return the stored entry."""
        ...

    async def find(self, call: CallTool) -> Entry | None:
        """Return the entry under a call's key."""
        ...

    async def take_over(self, call: CallTool, entry: Entry, previous: UUID) -> bool:
        """Store that a call begun by `previous` begins anew; False: another gateway took it
        over."""
        ...

    async def settle(self, call: CallTool, entry: Entry, outcome: ToolOutcome) -> ToolOutcome:
        """Store the outcome of a call, begun or not, unless one is stored that the entry does not
        replace; return the call's stored one, or this one where the key is another call's."""
        ...

    async def add(self, calls: Sequence[tuple[CallTool, Entry]]) -> None:
        """Store calls with their outcomes, in one order; those with an entry stay as they are."""
        ...

    async def results(self, scope: Scope, keys: Sequence[UUID]) -> Mapping[UUID, JsonValue]:
        """Return the results of the calls that succeeded, by idempotency key."""
        ...

    async def lives(self, owner: UUID) -> bool:
        """Whether the gateway process with this id is alive."""
        ...

    async def forget(self, older_than: datetime) -> None:
        """Delete calls that no grant covers any more."""
        ...


class KeptResults(Protocol):
    """Stores which workflows' results are cached. May raise StorageUnavailable, BusError."""

    async def find(self, key: ResultKey) -> CachedResult | None:
        """Return the entry under a key, which may have expired."""
        ...

    async def keep(self, key: ResultKey, kept: CachedResult) -> None:
        """Store an entry, replacing that of the same key."""
        ...


class LastingResults(KeptResults, Protocol):
    """Cached results that stay until they are deleted. May raise StorageUnavailable."""

    async def drop(self, scope: Scope, capability_id: UUID, but_revision: int) -> None:
        """Delete the results of a capability, except those of one revision of its settings."""
        ...

    async def forget(self, now: datetime) -> None:
        """Delete expired results."""
        ...
