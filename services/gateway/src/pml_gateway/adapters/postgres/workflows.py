"""Workflows, approvals and the outbox in Postgres, schema `gateway`."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from pml_common.contracts import catalog
from pml_common.contracts.base import Event
from pml_common.contracts.scope import Scope
from pml_common.errors import Retryable
from pml_common.storage.inbox import decode_facts, encode_facts
from pml_common.storage.pool import Connection, Pool, connection, snapshot, transaction
from pml_common.storage.queries import load_queries, storable
from pml_gateway.adapters.postgres.deadline import with_deadline
from pml_gateway.adapters.postgres.rows import (
    approval_of,
    key_of,
    outgoing_columns,
    printed,
    summary_of,
    workflow_columns,
    workflow_now,
    workflow_of,
)
from pml_gateway.adapters.workflow_cache import Copy, WorkflowCache
from pml_gateway.domain.api.views import ApprovalPage, WorkflowPage, approvals_of
from pml_gateway.domain.workflow.workflow import Approval, Step, Workflow
from pml_gateway.ports import Taken

_SQL = load_queries("pml_gateway")

_MOST_ATTEMPTS = 8

HEAD_START = timedelta(seconds=5)
"""How long a message stays with whoever stored it before the sweeper publishes it too."""


class PostgresWorkflowStore:
    """See `ports.WorkflowStore`; what a caller waits for takes `patience_s` at most."""

    def __init__(
        self, pool: Pool, *, patience_s: float = 1.5, head_start: timedelta = HEAD_START
    ) -> None:
        self._pool = pool
        self._patience_s = patience_s
        self._head_start = head_start
        self._copies = WorkflowCache()

    async def accept(self, workflow: Workflow) -> Workflow | None:
        """See `ports.WorkflowStore`."""
        return await with_deadline(self._accept(workflow), self._patience_s)

    async def _accept(self, workflow: Workflow) -> Workflow | None:
        requested, key = workflow.requested, key_of(workflow.scope)
        async with connection(self._pool) as held:
            stored = await held.fetchval(
                _SQL["accept-workflow"],
                *key,
                workflow.workflow_id,
                workflow.idempotency_key,
                workflow.request_hash,
                workflow.timeout_s,
                workflow.traceparent,
                requested.model_dump_json(),
                requested.requested_at,
                workflow.due_at,
                requested.message_id,
                catalog.type_of(requested).name,
                self._head_start,
            )
            if stored is not None:
                self._copies.keep(workflow, 0)
                return None
            row = await held.fetchrow(_SQL["get-workflow-by-key"], *key, workflow.idempotency_key)
        if row is None:
            raise LookupError(f"workflow {workflow.workflow_id} is neither new nor known")
        return workflow_now(row)

    async def step_once(
        self, cause: Event, consumer: str, workflow_id: UUID, step: Callable[[Workflow], Step]
    ) -> Taken | None:
        """See `ports.WorkflowStore`. A step on our copy, else on what is read, counts only if
        nobody took one since; else all over again."""
        async with connection(self._pool) as held:
            copy = self._copies.take(cause.scope, workflow_id)
            if copy is not None:
                taken = await self._take(held, cause, consumer, copy, step)
                if taken is not None and taken.workflow is not copy.workflow:
                    return taken
            for _ in range(_MOST_ATTEMPTS):
                row = await held.fetchrow(
                    _SQL["get-workflow-and-facts"],
                    *key_of(cause.scope),
                    workflow_id,
                    cause.event_id,
                    consumer,
                )
                if row is None:
                    return None
                if row["facts"] is not None:
                    return Taken(decode_facts(row["facts"]), None)
                read = Copy(workflow_now(row), row["revision"])
                taken = await self._take(held, cause, consumer, read, step)
                if taken is not None:
                    return taken
        raise Retryable(f"workflow {workflow_id} changed {_MOST_ATTEMPTS} times meanwhile")

    async def _take(
        self,
        held: Connection,
        cause: Event,
        consumer: str,
        known: Copy,
        step: Callable[[Workflow], Step],
    ) -> Taken | None:
        """The step, kept with the memory of its message; or nothing to keep. None: somebody took
        a step since, or handled the message."""
        before = known.workflow
        after, effects = step(before)
        if after is before:
            return Taken(effects, before)
        asked = _asked_now(before, after)
        revision = await held.fetchval(
            _SQL["step-once"],
            *workflow_columns(before, after),
            known.revision,
            cause.event_id,
            consumer,
            encode_facts(effects),
            asked.requested_at if asked else None,
            asked.expires_at if asked else None,
            printed(asked.parked) if asked else None,
        )
        if revision is None:
            return None
        self._copies.keep(after, revision)
        return Taken(effects, after)

    async def change(
        self, scope: Scope, workflow_id: UUID, step: Callable[[Workflow], Step]
    ) -> Step | None:
        """See `ports.WorkflowStore`."""
        return await with_deadline(self._change(scope, workflow_id, step), self._patience_s)

    async def _change(
        self, scope: Scope, workflow_id: UUID, step: Callable[[Workflow], Step]
    ) -> Step | None:
        async with transaction(self._pool) as held:
            before = await _hold(held, scope, workflow_id)
            if before is None:
                return None
            after, effects = step(before)
            if after is not before:
                await _save(held, before, after)
            for message in effects:
                columns = outgoing_columns(message)
                await held.execute(
                    _SQL["put-outgoing"], *columns, after.traceparent, self._head_start
                )
        return after, effects

    async def get(self, scope: Scope, workflow_id: UUID) -> Workflow | None:
        """See `ports.WorkflowStore`."""
        return await with_deadline(self._get(scope, workflow_id), self._patience_s)

    async def _get(self, scope: Scope, workflow_id: UUID) -> Workflow | None:
        async with connection(self._pool) as held:
            row = await held.fetchrow(_SQL["get-workflow"], *key_of(scope), workflow_id)
        return None if row is None else workflow_now(row)

    async def page(self, scope: Scope, limit: int, offset: int) -> WorkflowPage:
        """See `ports.WorkflowStore`."""
        return await with_deadline(self._page(scope, limit, offset), self._patience_s)

    async def _page(self, scope: Scope, limit: int, offset: int) -> WorkflowPage:
        async with snapshot(self._pool) as held:
            rows = await held.fetch(_SQL["list-workflows"], *key_of(scope), limit, offset)
            total = await held.fetchval(_SQL["count-workflows"], *key_of(scope))
        return WorkflowPage(workflows=tuple(summary_of(row) for row in rows), total=total)

    async def waiting(self, scope: Scope, limit: int, offset: int) -> ApprovalPage:
        """See `ports.WorkflowStore`."""
        return await with_deadline(self._waiting(scope, limit, offset), self._patience_s)

    async def _waiting(self, scope: Scope, limit: int, offset: int) -> ApprovalPage:
        async with snapshot(self._pool) as held:
            rows = await held.fetch(_SQL["list-waiting"], *key_of(scope), limit, offset)
            total = await held.fetchval(_SQL["count-waiting"], *key_of(scope))
        return approvals_of([workflow_now(row) for row in rows], total)

    async def due(self, now: datetime, limit: int) -> Sequence[tuple[Scope, UUID]]:
        """See `ports.WorkflowStore`."""
        async with connection(self._pool) as held:
            rows = await held.fetch(_SQL["list-due"], now, limit)
        return [(Scope(org=row["org"], project=row["project"]), row["workflow_id"]) for row in rows]


def _asked_now(before: Workflow, after: Workflow) -> Approval | None:
    """The question that a step put."""
    known = before.approval.approval_id if before.approval else None
    asked = after.approval
    return None if asked is None or asked.approval_id == known else asked


async def _hold(held: Connection, scope: Scope, workflow_id: UUID) -> Workflow | None:
    """A workflow whose row is locked. Its approval is read after that: a joined one could be older
    than the lock."""
    row = await held.fetchrow(_SQL["hold-workflow"], *key_of(scope), workflow_id)
    if row is None:
        return None
    return workflow_of(row, await _approval(held, scope, row["approval_id"]))


async def _approval(held: Connection, scope: Scope, approval_id: UUID | None) -> Approval | None:
    if approval_id is None:
        return None
    row = await held.fetchrow(_SQL["get-approval"], *key_of(scope), approval_id)
    return None if row is None else approval_of(approval_id, row)


async def _save(held: Connection, before: Workflow, after: Workflow) -> None:
    await held.execute(_SQL["save-workflow"], *workflow_columns(before, after))
    answer = after.approval
    if answer is None or answer == before.approval:
        return
    await held.execute(
        _SQL["settle-approval"],
        *key_of(after.scope),
        answer.approval_id,
        answer.outcome,
        None if answer.decided_by is None else storable(answer.decided_by),
        answer.decided_at,
        None if answer.reason is None else storable(answer.reason),
        answer.shown.digest if answer.shown else None,
        answer.shown.whole if answer.shown else None,
    )
