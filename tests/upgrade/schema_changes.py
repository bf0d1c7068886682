"""A schema as its services see it, and the changes that break them."""

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

import asyncpg

_CONTRACT = re.compile(r"^-- contract of (\S+\.sql)\b", re.MULTILINE)

_COLUMNS = """
SELECT c.relname AS relation, a.attname AS name,
    format_type(a.atttypid, a.atttypmod) AS type,
    a.attnotnull AND NOT (a.atthasdef OR a.attidentity <> '') AS needed
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = $1::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm')
    AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped
"""
_RULES = """
SELECT c.relname AS relation, n.conname AS name, n.contype::text AS kind,
    ARRAY(
        SELECT a.attname::text FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnum = ANY (n.conkey) ORDER BY a.attname
    ) AS columns
FROM pg_constraint n JOIN pg_class c ON c.oid = n.conrelid
WHERE c.relnamespace = $1::regnamespace AND NOT c.relispartition AND n.contype <> 'n'
UNION ALL
SELECT c.relname, i.relname, 'u',
    ARRAY(
        SELECT a.attname::text FROM pg_attribute a
        WHERE a.attrelid = i.oid AND a.attnum <= x.indnkeyatts ORDER BY a.attname
    )
FROM pg_index x JOIN pg_class c ON c.oid = x.indrelid JOIN pg_class i ON i.oid = x.indexrelid
WHERE c.relnamespace = $1::regnamespace AND x.indisunique AND NOT c.relispartition
    AND NOT EXISTS (SELECT FROM pg_constraint n WHERE n.conindid = i.oid)
"""
_FUNCTIONS = """
SELECT p.proname || '(' || pg_get_function_identity_arguments(p.oid) || ')' AS name,
    pg_get_function_result(p.oid) AS result
FROM pg_proc p WHERE p.pronamespace = $1::regnamespace
"""
_SECURED = """
SELECT relname FROM pg_class
WHERE relnamespace = $1::regnamespace AND relrowsecurity AND NOT relispartition
"""


@dataclass(frozen=True)
class Column:
    """A column; `needed` if an insert must set it."""

    type: str
    needed: bool = False


@dataclass(frozen=True)
class Rule:
    """A constraint or a unique index on some columns; `kind` as in pg_constraint.contype."""

    kind: str
    columns: frozenset[str]


@dataclass(frozen=True)
class Schema:
    """Columns by relation and name, rules by relation and name, results of functions by signature,
    and the tables under row-level security."""

    columns: Mapping[str, Mapping[str, Column]]
    rules: Mapping[str, Mapping[str, Rule]]
    functions: Mapping[str, str]
    secured: Set[str]


async def read_schema(session: asyncpg.Connection, name: str) -> Schema:
    """Read a schema from the catalog of Postgres."""
    columns = dict[str, dict[str, Column]]()
    for row in await session.fetch(_COLUMNS, name):
        columns.setdefault(row["relation"], {})[row["name"]] = Column(row["type"], row["needed"])
    rules = dict[str, dict[str, Rule]]()
    for row in await session.fetch(_RULES, name):
        rules.setdefault(row["relation"], {})[row["name"]] = Rule(
            row["kind"], frozenset(row["columns"])
        )
    functions = {row["name"]: row["result"] for row in await session.fetch(_FUNCTIONS, name)}
    secured = {row["relname"] for row in await session.fetch(_SECURED, name)}
    return Schema(columns, rules, functions, secured)


def breaks(released: Schema, now: Schema) -> Iterator[str]:
    """Changes that break services of the release: what they read or write is gone or different, or
    their rows are refused."""
    for relation, columns in released.columns.items():
        if relation not in now.columns:
            yield f"{relation}: dropped or renamed"
            continue
        yield from _column_breaks(relation, columns, now.columns[relation])
        rules = released.rules.get(relation, {}), now.rules.get(relation, {})
        yield from _rule_breaks(relation, columns, *rules)
        if relation in now.secured - released.secured:
            yield f"{relation}: under row-level security now"
    for signature, result in released.functions.items():
        if now.functions.get(signature) != result:
            yield f"{signature}: dropped, or returns something else"


def _column_breaks(
    relation: str, released: Mapping[str, Column], now: Mapping[str, Column]
) -> Iterator[str]:
    for name, column in released.items():
        if name not in now:
            yield f"{relation}.{name}: dropped or renamed"
        elif now[name].type != column.type:
            yield f"{relation}.{name}: {column.type} became {now[name].type}"
        elif now[name].needed and not column.needed:
            yield f"{relation}.{name}: not null without a default now"
    for name in now.keys() - released.keys():
        if now[name].needed:
            yield f"{relation}.{name}: new, not null and without a default"


def _rule_breaks(
    relation: str,
    columns: Mapping[str, Column],
    released: Mapping[str, Rule],
    now: Mapping[str, Rule],
) -> Iterator[str]:
    """A key that is gone breaks ON CONFLICT; a rule under a known name may be a wider one."""
    keys, released_keys = _keys(now), _keys(released)
    for name, rule in released.items():
        if rule.columns in released_keys - keys:
            yield f"{relation}: key {name} dropped"
    for name, rule in now.items():
        if name in released or rule.columns in released_keys:
            continue
        if rule.columns and rule.columns <= columns.keys():
            yield f"{relation}: new rule {name} on columns of the release"


def _keys(rules: Mapping[str, Rule]) -> set[frozenset[str]]:
    return {rule.columns for rule in rules.values() if rule.kind in "pu"}


def contract_of(sql: str) -> str | None:
    """The migration whose contraction this one says it is: `-- contract of NAME.sql`."""
    found = _CONTRACT.search(sql)
    return found.group(1) if found else None
