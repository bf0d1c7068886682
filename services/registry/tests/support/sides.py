"""Statements run on a database of tenants, as a role, and undone."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import asyncpg

from pml_common.storage.roles import Roles
from services.registry.tests.support.builders import SCOPE
from services.registry.tests.support.tenants import Tenants


@dataclass(frozen=True)
class Outcome:
    """Rows or error of a statement, and digests of this tenant's rows and of the others' after."""

    answer: object
    own: object
    others: object


class Side:
    """One of the two databases."""

    def __init__(self, session: asyncpg.Connection, stored: Tenants, roles: Roles) -> None:
        self.session = session
        self.roles = roles
        own = f"(org, project) = ('{SCOPE.org}', '{SCOPE.project}')"
        self._own, self._others = (
            " UNION ALL ".join(
                f"SELECT '{table}', md5(string_agg(row, ',' ORDER BY row)) FROM (SELECT "  # noqa: S608
                f"concat_ws('|', {', '.join(f'{each}::text' for each in columns)}) AS row "
                f"FROM {table} WHERE {condition}) AS rows"
                for table, columns in stored.tables.items()
            )
            for condition in (own, f"NOT {own}")
        )

    async def run(self, role: str, statement: str, values: Sequence[object]) -> Outcome:
        """Run a statement as a role, bound to SCOPE, and undo it."""
        changed = self.session.transaction()
        await changed.start()
        try:
            await self.session.execute(f'SET LOCAL ROLE "{role}"')
            await self.session.execute(
                "SELECT set_config('pml.org', $1, true), set_config('pml.project', $2, true)",
                SCOPE.org,
                SCOPE.project,
            )
            answer = await self._answer(statement, values)
            own: object = None
            others: object = None
            if re.search(r"\b(INSERT|UPDATE|DELETE)\b", statement):
                await self.session.execute(f'SET LOCAL ROLE "{self.roles.batch}"')
                own = await self.session.fetch(self._own)
                others = await self.session.fetch(self._others)
            return Outcome(answer, own, others)
        finally:
            await changed.rollback()

    async def _answer(self, statement: str, values: Sequence[object]) -> object:
        try:
            async with self.session.transaction():
                rows = await self.session.fetch(statement, *values)
                return _unordered([tuple(row) for row in rows])
        except asyncpg.PostgresError as error:
            return type(error).__name__


def _unordered(value: object) -> object:
    """Sort rows and arrays: their order is the plan's where a statement gives none."""
    if isinstance(value, tuple):
        return tuple(_unordered(each) for each in cast(tuple[object, ...], value))
    if isinstance(value, list):
        return sorted((_unordered(each) for each in cast(list[object], value)), key=repr)
    return value
