"""Workflows, approvals and the outbox in Postgres, schema `gateway`."""

from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from datetime import datetime, timedelta
from operator import itemgetter
from uuid import UUID

import asyncpg
from typing_extensions import override

from pml_common.contracts import catalog, ids
from pml_common.contracts.base import Event, Message
from pml_common.contracts.executor import RunFinished
from pml_common.contracts.scope import Scope
from pml_common.errors import Retryable
from pml_common.storage.columns import scope_columns, scope_of
from pml_common.storage.inbox import decode_facts, encode_facts
from pml_common.storage.pool import Connection
from pml_common.storage.queries import load_queries, storable
from pml_common.storage.scoped import ScopedPools, at_once
from pml_gateway.adapters.postgres.deadline import with_deadline
from pml_gateway.adapters.postgres.rows import (
    approval_of,
    end_columns,
    erased_columns,
    outgoing_columns,
    summary_of,
    to_json,
    workflow_columns,
    workflow_now,
    workflow_of,
)
from pml_gateway.adapters.workflow_cache import CachedWorkflow, WorkflowCache
from pml_gateway.domain.api.list_cursors import After
from pml_gateway.domain.api.views import ApprovalPage, WorkflowPage, approvals_of, workflows_of
from pml_gateway.domain.workflow.joining import is_joinable
from pml_gateway.domain.workflow.workflow import Approval, Step, Workflow, run_ended
from pml_gateway.ports import Taken, WorkflowStore

_SQL = load_queries("pml_gateway")

_MOST_ATTEMPTS = 8

HEAD_START = timedelta(seconds=5)
"""Time in which the process that stored a message publishes it, before the sweeper does, too."""


class PostgresWorkflowStore(WorkflowStore):
    """Operations that a caller waits for take `patience_s` at most."""

    def __init__(
        self, pools: ScopedPools, *, patience_s: float = 1.5, head_start: timedelta = HEAD_START
    ) -> None:
        self._pools = pools
        self._patience_s = patience_s
        self._head_start = head_start
        self._cache = WorkflowCache()

    @override
    async def accept(
        self, workflow: Workflow, effects: Sequence[Message], join_at: datetime | None = None
    ) -> Workflow | None:
        digest = workflow.call_digest
        if join_at is None or digest is None:
            accepting = self._accept(workflow, effects)
        else:
            accepting = self._join_or_accept(workflow, effects, digest, join_at)
        return await with_deadline(accepting, self._patience_s)

    async def _accept(self, workflow: Workflow, effects: Sequence[Message]) -> Workflow | None:
        scope, values = workflow.scope, self._accepting(workflow, effects)
        if await self._pools.change_at_once(scope, _SQL["accept-workflow"], *values) is None:
            key = *scope_columns(scope), workflow.workflow_id
            return _known(workflow, await self._pools.fetchrow(scope, _SQL["get-workflow"], *key))
        self._cache.put(workflow, 0)
        return None

    async def _join_or_accept(
        self, workflow: Workflow, effects: Sequence[Message], call_digest: str, at: datetime
    ) -> Workflow | None:
        """Look and accept in one transaction, under a lock of the call."""
        key = scope_columns(workflow.scope)
        async with self._pools.transaction(workflow.scope) as conn:
            await conn.execute(_SQL["lock-call"], *key, call_digest)
            row = await conn.fetchrow(_SQL["find-joinable"], *key, call_digest)
            earlier = None if row is None else workflow_now(row)
            if earlier is not None and is_joinable(earlier, at):
                return earlier
            values = self._accepting(workflow, effects)
            accept = at_once(workflow.scope, _SQL["accept-workflow"], *values)
            if await conn.fetchval(*accept) is None:
                row = await conn.fetchrow(_SQL["get-workflow"], *key, workflow.workflow_id)
                return _known(workflow, row)
        self._cache.put(workflow, 0)
        return None

    def _accepting(self, workflow: Workflow, effects: Sequence[Message]) -> tuple[object, ...]:
        """Return the values of `accept-workflow`."""
        asked = workflow.approval
        return (
            *_columns_of_new(workflow),
            asked.requested_at if asked else None,
            asked.expires_at if asked else None,
            [message.message_id for message in effects],
            [catalog.type_of(message).name for message in effects],
            [message.model_dump_json() for message in effects],
            self._head_start,
        )

    @override
    async def add(self, workflows: Sequence[Workflow]) -> Set[tuple[Scope, UUID]]:
        columns = sorted(map(_columns_of_new, workflows), key=itemgetter(0, 1, 2))
        async with self._pools.across() as conn:
            rows = await conn.fetch(_SQL["add-workflows"], *map(list, zip(*columns, strict=True)))
        added = {(scope_of(row), row["workflow_id"]) for row in rows}
        for workflow in workflows:
            if (workflow.scope, workflow.workflow_id) in added:
                self._cache.put(workflow, 0)
        return added

    @override
    async def step_once(
        self, cause: Event, consumer: str, workflow_id: UUID, step: Callable[[Workflow], Step]
    ) -> Taken | None:
        """Take the step on the cached workflow, else on the stored one. It is stored only if no
        other step was since, else repeated."""
        cached = self._cache.take(cause.scope, workflow_id)
        if cached is not None:
            taken = await self._take(cause, consumer, cached, step)
            if taken is not None and taken.workflow is not cached.workflow:
                return taken
        asked = *scope_columns(cause.scope), workflow_id, cause.event_id, consumer
        for _ in range(_MOST_ATTEMPTS):
            row = await self._pools.fetchrow(cause.scope, _SQL["get-workflow-and-facts"], *asked)
            if row is None:
                return None
            if row["facts"] is not None:
                return Taken(decode_facts(row["facts"]), None)
            read = CachedWorkflow(workflow_now(row), row["revision"])
            taken = await self._take(cause, consumer, read, step)
            if taken is not None:
                return taken
        raise Retryable(f"workflow {workflow_id} changed {_MOST_ATTEMPTS} times meanwhile")

    async def _take(
        self,
        cause: Event,
        consumer: str,
        known: CachedWorkflow,
        step: Callable[[Workflow], Step],
    ) -> Taken | None:
        """Store the step with its inbox row, unless it changes nothing. None: another step was
        stored since, or the message was handled."""
        before = known.workflow
        after, effects = step(before)
        if after is before:
            return Taken(effects, before)
        asked = _asked_now(before, after)
        revision = await self._pools.change_at_once(
            cause.scope,
            _SQL["step-once"],
            *workflow_columns(before, after),
            known.revision,
            cause.event_id,
            consumer,
            encode_facts(effects),
            asked.requested_at if asked else None,
            asked.expires_at if asked else None,
            to_json(asked.parked) if asked else None,
        )
        if revision is None:
            return None
        self._cache.put(after, revision)
        return Taken(effects, after)

    @override
    async def end(self, runs: Sequence[RunFinished]) -> Sequence[Workflow]:
        """Take the steps on cached workflows that they change, else on the stored ones, in one
        statement; those of workflows that took another step since are repeated."""
        left, ended = {(run.scope, run.workflow_id): run for run in runs}, list[Workflow]()
        known = {
            key: cached
            for key, run in left.items()
            if (cached := self._cache.find(*key)) is not None
            and run_ended(cached.workflow, run) is not cached.workflow
        }
        async with self._pools.across() as conn:
            for _ in range(_MOST_ATTEMPTS):
                known |= await _read(conn, [key for key in left if key not in known])
                after = {key: run_ended(one.workflow, left[key]) for key, one in known.items()}
                changed = [key for key, one in known.items() if after[key] is not one.workflow]
                stored = await _store_ends(conn, [(after[key], known[key]) for key in changed])
                done = [key for key in known if key not in changed or key in stored]
                ended += [after[key] for key in done]
                for key in done:
                    self._cache.take(*key)
                if not (left := {key: left[key] for key in changed if key not in stored}):
                    return ended
                known = {}
        raise Retryable(f"{len(left)} workflows changed {_MOST_ATTEMPTS} times meanwhile")

    @override
    def latest(self, scope: Scope, workflow_id: UUID) -> Workflow | None:
        found = self._cache.find(scope, workflow_id)
        return None if found is None else found.workflow

    @override
    async def change(
        self, scope: Scope, workflow_id: UUID, step: Callable[[Workflow], Step]
    ) -> Step | None:
        return await with_deadline(self._change(scope, workflow_id, step), self._patience_s)

    async def _change(
        self, scope: Scope, workflow_id: UUID, step: Callable[[Workflow], Step]
    ) -> Step | None:
        async with self._pools.transaction(scope) as conn:
            before = await _hold(conn, scope, workflow_id)
            if before is None:
                return None
            after, effects = step(before)
            if after is not before:
                await _save(conn, before, after)
            for message in effects:
                columns = outgoing_columns(message)
                await conn.execute(
                    _SQL["put-outgoing"], *columns, after.traceparent, self._head_start
                )
        return after, effects

    @override
    async def get(self, scope: Scope, workflow_id: UUID) -> Workflow | None:
        return await with_deadline(self._get(scope, workflow_id), self._patience_s)

    async def _get(self, scope: Scope, workflow_id: UUID) -> Workflow | None:
        key = *scope_columns(scope), workflow_id
        row = await self._pools.fetchrow(scope, _SQL["get-workflow"], *key)
        return None if row is None else workflow_now(row)

    @override
    async def joinable(self, scope: Scope, call_digest: str) -> Workflow | None:
        return await with_deadline(self._joinable(scope, call_digest), self._patience_s)

    async def _joinable(self, scope: Scope, call_digest: str) -> Workflow | None:
        key = *scope_columns(scope), call_digest
        row = await self._pools.fetchrow(scope, _SQL["find-joinable"], *key)
        return None if row is None else workflow_now(row)

    @override
    async def deliver(self, scope: Scope, workflow_id: UUID) -> None:
        await with_deadline(self._deliver(scope, workflow_id), self._patience_s)

    async def _deliver(self, scope: Scope, workflow_id: UUID) -> None:
        key = *scope_columns(scope), workflow_id
        await self._pools.change(scope, _SQL["deliver-workflow"], *key)

    @override
    async def page(
        self, scope: Scope, limit: int, offset: int, after: After | None = None
    ) -> WorkflowPage:
        return await with_deadline(self._page(scope, limit, offset, after), self._patience_s)

    async def _page(
        self, scope: Scope, limit: int, offset: int, after: After | None
    ) -> WorkflowPage:
        where = (*scope_columns(scope), limit + 1, offset, *_place(after))
        async with self._pools.snapshot(scope) as conn:
            rows = await conn.fetch(_SQL["list-workflows"], *where)
            total = await conn.fetchval(_SQL["count-workflows"], *scope_columns(scope))
        return workflows_of([summary_of(row) for row in rows], total, limit)

    @override
    async def waiting(
        self, scope: Scope, limit: int, offset: int, after: After | None = None
    ) -> ApprovalPage:
        return await with_deadline(self._waiting(scope, limit, offset, after), self._patience_s)

    async def _waiting(
        self, scope: Scope, limit: int, offset: int, after: After | None
    ) -> ApprovalPage:
        where = (*scope_columns(scope), limit + 1, offset, *_place(after))
        async with self._pools.snapshot(scope) as conn:
            rows = await conn.fetch(_SQL["list-waiting"], *where)
            total = await conn.fetchval(_SQL["count-waiting"], *scope_columns(scope))
        return approvals_of([workflow_now(row) for row in rows], total, limit)

    @override
    async def forget(self, ended_before: datetime, limit: int) -> int:
        async with self._pools.across() as conn:
            return len(await conn.fetch(_SQL["forget-workflows"], ended_before, limit))

    @override
    async def due(self, scope: Scope, now: datetime, limit: int) -> Sequence[UUID]:
        columns = (*scope_columns(scope), now, limit)
        rows = await self._pools.fetch(scope, _SQL["list-due"], *columns)
        return [row["workflow_id"] for row in rows]


def _known(workflow: Workflow, row: asyncpg.Record | None) -> Workflow:
    """Return the stored workflow of a key that is taken. Raises LookupError."""
    if row is None:
        raise LookupError(f"workflow {workflow.workflow_id} is neither new nor known")
    return workflow_now(row)


def _place(after: After | None) -> tuple[datetime | None, UUID | None]:
    return (None, None) if after is None else (after.at, after.workflow_id)


def _columns_of_new(workflow: Workflow) -> tuple[object, ...]:
    """Return all columns of a new workflow, as it is after its first step. One that has its id from
    before keys were a principal's own has no principal: it may be stored beside the present one.
    """
    requested, new = workflow.requested, replace(workflow, analysis=None, grant=None)
    principal, key = requested.principal, workflow.idempotency_key
    is_former = workflow.workflow_id != ids.workflow_id(workflow.scope, principal, key)
    return (
        *workflow_columns(new, workflow),
        workflow.idempotency_key,
        workflow.request_hash,
        workflow.timeout_s,
        workflow.traceparent,
        requested.model_dump_json(),
        requested.requested_at,
        workflow.call_digest,
        None if is_former else storable(principal),
    )


def _asked_now(before: Workflow, after: Workflow) -> Approval | None:
    """Return the approval that a step requested, if any."""
    known = before.approval.approval_id if before.approval else None
    asked = after.approval
    return None if asked is None or asked.approval_id == known else asked


async def _read(
    conn: Connection, keys: Sequence[tuple[Scope, UUID]]
) -> dict[tuple[Scope, UUID], CachedWorkflow]:
    """Read workflows; those that there are not are missing."""
    if not keys:
        return {}
    orgs, projects = [scope.org for scope, _ in keys], [scope.project for scope, _ in keys]
    rows = await conn.fetch(_SQL["get-workflows"], orgs, projects, [each for _, each in keys])
    return {
        (scope_of(row), row["workflow_id"]): CachedWorkflow(workflow_now(row), row["revision"])
        for row in rows
    }


async def _store_ends(
    conn: Connection, ends: Sequence[tuple[Workflow, CachedWorkflow]]
) -> set[tuple[Scope, UUID]]:
    """Store workflows after the ends of their runs; return those that took no other step since."""
    if not ends:
        return set()
    columns = [end_columns(after, known.revision) for after, known in ends]
    rows = await conn.fetch(_SQL["end-workflows"], *map(list, zip(*columns, strict=True)))
    return {(scope_of(row), row["workflow_id"]) for row in rows}


async def _hold(conn: Connection, scope: Scope, workflow_id: UUID) -> Workflow | None:
    """Lock a workflow's row and return the workflow. Its approval is read after that: a joined one
    could be older than the lock."""
    row = await conn.fetchrow(_SQL["hold-workflow"], *scope_columns(scope), workflow_id)
    if row is None:
        return None
    return workflow_of(row, await _approval(conn, scope, row["approval_id"]))


async def _approval(conn: Connection, scope: Scope, approval_id: UUID | None) -> Approval | None:
    if approval_id is None:
        return None
    row = await conn.fetchrow(_SQL["get-approval"], *scope_columns(scope), approval_id)
    return None if row is None else approval_of(approval_id, row)


async def _save(conn: Connection, before: Workflow, after: Workflow) -> None:
    if after.deleted_at is not None:
        await conn.execute(_SQL["erase-workflow"], *erased_columns(before, after))
        return
    await conn.execute(_SQL["save-workflow"], *workflow_columns(before, after))
    answer = after.approval
    if answer is None or answer == before.approval:
        return
    await conn.execute(
        _SQL["settle-approval"],
        *scope_columns(after.scope),
        answer.approval_id,
        answer.outcome,
        None if answer.decided_by is None else storable(answer.decided_by),
        answer.decided_at,
        None if answer.reason is None else storable(answer.reason),
        answer.shown.digest if answer.shown else None,
        answer.shown.whole if answer.shown else None,
        to_json(answer.decided_through),
    )
