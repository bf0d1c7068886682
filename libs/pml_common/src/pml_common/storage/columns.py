"""Columns that the tables of all schemas have in common, and columns of several rows."""

from collections.abc import Sequence

import asyncpg

from pml_common.contracts.scope import Scope


def scope_columns(scope: Scope) -> tuple[str, str]:
    """Return the columns `org` and `project`, with which every key begins."""
    return scope.org, scope.project


def scope_of(row: asyncpg.Record) -> Scope:
    """Return the scope in a row's columns `org` and `project`."""
    return Scope(org=row["org"], project=row["project"])


def columns(rows: Sequence[tuple[object, ...]], width: int) -> Sequence[Sequence[object]]:
    """Turn rows of `width` values into columns, for a statement that unnests one array of each."""
    return [[row[at] for row in rows] for at in range(width)]
