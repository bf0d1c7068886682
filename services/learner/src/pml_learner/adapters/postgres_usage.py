"""Counted calls and opinions in Postgres."""

from uuid import UUID

from pml_common.contracts.learner import (
    Feedback,
    FeedbackPage,
    GiveFeedback,
    ListFeedback,
    ListToolUsage,
    ToolUsage,
    ToolUsagePage,
)
from pml_common.contracts.scope import Scope
from pml_common.storage.columns import scope_columns
from pml_common.storage.pool import Connection
from pml_common.storage.queries import load_queries, storable
from pml_common.storage.scoped import ScopedPools
from pml_learner.domain.opinions import LAST, WEIGHED_OF_ONE_HOUR, Opinion, Weights, valued
from pml_learner.domain.orders import MOST_CALLED, MOST_JUDGED

_SQL = load_queries("pml_learner")

_START = (None,) * 3
"""The place before the first entry of a list."""


class PostgresUsage:
    """Reads counted calls; stores and reads opinions."""

    def __init__(self, pools: ScopedPools) -> None:
        self._pools = pools

    async def usage(self, query: ListToolUsage) -> ToolUsagePage:
        where = (*scope_columns(query.scope), query.server_id)
        page = query.limit + 1, query.offset, *(MOST_CALLED.after(query.cursor) or _START[:3])
        async with self._pools.snapshot(query.scope) as session:
            rows = await session.fetch(_SQL["list-tool-usage"], *where, *page)
            counted = await session.fetchrow(_SQL["sum-tool-usage"], *where)
        usage, following = MOST_CALLED.cut([ToolUsage(**row) for row in rows], query.limit)
        return ToolUsagePage(usage=usage, next_cursor=following, **(counted or {}))

    async def judge(self, given: GiveFeedback) -> Feedback | None:
        scope = scope_columns(given.scope)
        async with self._pools.transaction(given.scope) as session:
            capability_id = await session.fetchval(
                _SQL["capability-of-workflow"], *scope, given.workflow_id
            )
            if capability_id is None:
                return None
            who = storable(given.principal)
            opinion = capability_id, given.useful, given.comment
            await session.execute(_SQL["give-feedback"], *scope, given.workflow_id, who, *opinion)
            (feedback,) = await _feedback(session, scope, capability_id, 1, 0, *_START[:2])
        return feedback

    async def weights(self, scope: Scope, workflow_id: UUID) -> Weights | None:
        key = (*scope_columns(scope), workflow_id, WEIGHED_OF_ONE_HOUR)
        row = await self._pools.fetchrow(scope, _SQL["opinion-weights"], *key)
        return None if row is None else Weights(**row)

    async def judged(self, query: ListFeedback) -> FeedbackPage:
        scope = scope_columns(query.scope)
        page = query.limit + 1, query.offset, *(MOST_JUDGED.after(query.cursor) or _START[:2])
        async with self._pools.snapshot(query.scope) as session:
            found = await _feedback(session, scope, None, *page)
            total = await session.fetchval(_SQL["count-feedback"], *scope)
        feedback, following = MOST_JUDGED.cut(found, query.limit)
        return FeedbackPage(feedback=feedback, total=total, next_cursor=following)


async def _feedback(
    session: Connection, scope: tuple[str, str], capability_id: UUID | None, *page: object
) -> list[Feedback]:
    rows = await session.fetch(_SQL["list-feedback"], *scope, capability_id, *page)
    ids = [row["capability_id"] for row in rows]
    said: dict[UUID, list[Opinion]] = {each: [] for each in ids}
    for row in await session.fetch(_SQL["list-opinions"], *scope, ids, LAST):
        opinion = Opinion(row["principal"], row["useful"], row["hour"])
        said[row["capability_id"]].append(opinion)
    return [valued(Feedback(**row), said[row["capability_id"]]) for row in rows]
