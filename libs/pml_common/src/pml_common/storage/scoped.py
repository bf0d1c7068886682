"""Statements bound to one scope by row-level security.

The policies of a schema's tables compare each row with the settings `pml.org` and `pml.project`.
These hold for one transaction: a session has none before and after it, and sees no row then.
"""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import asyncpg

from pml_common.contracts.scope import Scope
from pml_common.storage.columns import scope_columns
from pml_common.storage.pool import Connection, Pool, connection

_BOUND = """
SELECT found.*
FROM (
    SELECT length(
        set_config('pml.org', :org::text, true) || set_config('pml.project', :project::text, true)
    ) AS done
    OFFSET 0
) AS bound
CROSS JOIN LATERAL (
    SELECT *
    FROM (
:query
    ) AS asked
    OFFSET bound.done * 0
) AS found
"""
_AT_ONCE = "bound()"
_BOUND_AT_ONCE = """(
    SELECT length(
        set_config('pml.org', :org::text, true) || set_config('pml.project', :project::text, true)
    ) IS NOT NULL
)"""
_BIND = "SELECT set_config('pml.org', ':org', true), set_config('pml.project', ':project', true)"
"""For a statement without parameters; neither token of a scope contains a quotation mark."""


@dataclass(frozen=True)
class BoundPool:
    """Sessions that see the rows of the scope they are bound to. Everything raises
    StorageUnavailable."""

    pool: Pool

    async def fetch(self, scope: Scope, query: str, *values: object) -> list[asyncpg.Record]:
        """Run one query that reads, bound to a scope, in one round trip."""
        async with connection(self.pool) as session:
            return await session.fetch(_bound(query, len(values)), *values, *scope_columns(scope))

    async def fetchrow(self, scope: Scope, query: str, *values: object) -> asyncpg.Record | None:
        """Fetch the first row alone."""
        async with connection(self.pool) as session:
            return await session.fetchrow(
                _bound(query, len(values)), *values, *scope_columns(scope)
            )

    async def fetchval(self, scope: Scope, query: str, *values: object) -> Any:
        """Fetch the first column of the first row."""
        async with connection(self.pool) as session:
            return await session.fetchval(
                _bound(query, len(values)), *values, *scope_columns(scope)
            )

    async def change(self, scope: Scope, query: str, *values: object) -> Any:
        """Run one statement that changes rows, in a transaction bound to a scope, and return the
        first column of its first row."""
        async with self.transaction(scope) as session:
            return await session.fetchval(query, *values)

    async def change_at_once(self, scope: Scope, query: str, *values: object) -> Any:
        """Change rows as `change` does, in one round trip: the statement says `bound()` among the
        conditions of its outermost WHERE, which Postgres looks at before any row."""
        async with connection(self.pool) as session:
            return await session.fetchval(*at_once(scope, query, *values))

    def transaction(self, scope: Scope) -> AbstractAsyncContextManager[Connection]:
        """Bind a transaction to a scope; committed at the end of the block."""
        return _begun(self.pool, "BEGIN", scope)

    def snapshot(self, scope: Scope) -> AbstractAsyncContextManager[Connection]:
        """Bind a transaction that reads to a scope; its statements all see one snapshot, as a page
        and its total must."""
        return _begun(self.pool, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", scope)


@dataclass(frozen=True)
class ScopedPools(BoundPool):
    """Sessions of a schema with row-level security, none as its owner: its own of one scope alone,
    those of `reaching` also of what other scopes share with it, and those of `batch` of all scopes,
    for work that goes over many."""

    reaching: BoundPool
    batch: Pool

    def over(self, scope: Scope, read: Scope) -> BoundPool:
        """Return the sessions with which a scope reads rows of another, or its own."""
        return self if scope == read else self.reaching

    def across(self) -> AbstractAsyncContextManager[Connection]:
        """Acquire a session for a few statements over all scopes."""
        return connection(self.batch)


def at_once(scope: Scope, query: str, *values: object) -> tuple[str, *tuple[object, ...]]:
    """Return a statement that says `bound()`, and its values, such that it binds its own
    transaction."""
    return bound_at_once(query, len(values)), *values, *scope_columns(scope)


@lru_cache(maxsize=64)
def bound_at_once(query: str, parameters: int) -> str:
    """Return the statement with two parameters more, organisation and project. Raises ValueError
    where it does not say `bound()`.

    The condition has no column, so that Postgres looks at it once, before the rows below it. Were
    it ever to look later, nothing would be bound then: no row is found, and storing one is refused.
    """
    if query.count(_AT_ONCE) != 1:
        raise ValueError(f"the statement does not say {_AT_ONCE} once: {query}")
    condition = _BOUND_AT_ONCE.replace(":org", f"${parameters + 1}")
    return query.replace(_AT_ONCE, condition.replace(":project", f"${parameters + 2}"))


@lru_cache(maxsize=512)
def _bound(query: str, parameters: int) -> str:
    """Return a statement that binds its own transaction before it runs a query: two parameters
    more, organisation and project.

    The query's OFFSET depends on the row of the settings, hence it runs after that row was made,
    whatever the plan. Were it ever to run before, it would return no row: nothing is bound then.
    """
    numbered = _BOUND.replace(":org", f"${parameters + 1}").replace(
        ":project", f"${parameters + 2}"
    )
    return numbered.replace(":query", query)


@asynccontextmanager
async def _begun(pool: Pool, begin: str, scope: Scope) -> AsyncGenerator[Connection]:
    """Begin and bind in one round trip."""
    org, project = scope_columns(scope)
    bind = _BIND.replace(":org", org).replace(":project", project)
    async with connection(pool) as held:
        try:
            await held.execute(f"{begin}; {bind}")
            yield held
            await held.execute("COMMIT")
        except asyncpg.InternalClientError:
            raise  # the caller closes the connection
        except BaseException:
            if not held.is_closed() and held.is_in_transaction():
                await held.execute("ROLLBACK")
            raise
