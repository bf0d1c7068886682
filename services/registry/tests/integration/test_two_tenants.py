"""Every query of the registry with what another tenant's ids and names are, on two databases: one
that the others share, and one with this tenant's rows alone. Nothing may differ."""

import random
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

import pytest

from libs.pml_local.tests.support.databases import Databases, migrated
from pml_common.contracts.scope import Scope
from pml_common.storage.queries import load_queries
from pml_common.storage.roles import Roles, find_roles
from pml_local.postgres import PostgresServer
from services.registry.tests.support.builders import NOON, SCOPE
from services.registry.tests.support.owner import owner_session
from services.registry.tests.support.sides import Side
from services.registry.tests.support.tenants import OTHERS, Tenants, tenants

pytestmark = pytest.mark.integration

QUERIES = load_queries("pml_registry")
ROUNDS = 4

ACROSS: Mapping[str, str] = {
    "seen-capabilities": "a batch of messages, each with its scope",
    "undescribed": "a batch of messages, each with its scope",
    "learn-once": "a batch of messages, each with its scope",
    "unknown-capabilities": "a batch of messages, each with its scope",
    "claim-edges": "a batch of messages, each with its scope",
    **{
        f"{step}-{kind}-edges": "a batch of edges, each with its scope"
        for step in ("meet", "lock", "save", "forget")
        for kind in ("capability", "tool", "mixed")
    },
    **{
        f"due-{kind}-edges": "edges of all scopes, for the clock"
        for kind in ("capability", "tool", "mixed")
    },
    "outdated-uses": "uses of all scopes, to be embedded again",
    "mark-published": "changes of a batch, each with its scope",
    "unpublished-changes": "the outbox of all scopes",
    "lapsed-reservations": "reservations of all scopes, for the clock",
    "claim-uncurated": "scopes to be curated, for the clock",
    "unread-shapes": "programs of all scopes, for the clock",
    "scopes-without-provides": "scopes to be compared, for the clock",
    "versions-of-other-keys": "versions of all scopes, to be signed",
    "lock-capability": "a lock, which reads nothing",
    "lock-names": "a lock, which reads nothing",
    "lock-dependencies": "a lock, which reads nothing",
    "lock-provides": "a lock, which reads nothing",
    "lock-models": "a lock, which reads nothing",
    "take-turn": "a lock, which reads nothing",
    "take-embedding-turn": "a lock, which reads nothing",
    "stop-writers": "a lock, which reads nothing",
    "put-vectors": "vectors of a batch, each with its scope",
    "delete-vectors": "vectors of a batch, each with its scope",
    "hold-tools": "texts of a batch, each with its scope",
    "hold-capabilities": "texts of a batch, each with its scope",
    "keys-without-vector": "vectors of a batch, each with its scope",
    "forget-changes": "changes of a batch, each with its scope",
    **dict.fromkeys(
        ("unembedded-tools", "unembedded-capabilities"),
        "texts of all scopes, to be embedded by another model",
    ),
    **dict.fromkeys(
        ("noted-changes", "pending-changes", "abandoned-changes"),
        "what an external index is to be told of all scopes",
    ),
    **dict.fromkeys(
        (
            *("prepare-vectors", "discard-vectors", "retired-vectors", "some-vectors-of"),
            *("count-vectors", "vector-keys", "listed-vectors", "count-listed-vectors"),
        ),
        "all vectors of a model",
    ),
    **dict.fromkeys(
        (
            *("embedding-models", "known-model", "retire-models", "serve-model", "model-to-serve"),
            *("forget-model", "forget-indexed", "set-indexed", "still-followed", "abandon-index"),
            *("follow-vectors", "last-reindex", "begin-reindex", "save-reindex"),
        ),
        "models, index and reindexing of the deployment",
    ),
}
"""Statements that are of no scope, and why; no other may be."""

READS_ANOTHER = {"adopt-behaviour": "copies what `locate` found in another scope; see the role"}
"""Statements whose own conditions do not keep scopes apart, and what does."""

_VECTOR = [0.05] * 384
_IDS = 3
"""Number of the parameter that has behaviours' ids as texts, where a statement reads such."""


@pytest.fixture(scope="module")
async def stored(postgres_server: PostgresServer) -> AsyncGenerator[Tenants]:
    async with (
        Databases(postgres_server).empty() as dsn,
        tenants(await migrated(dsn, "registry"), postgres_server.dsn()) as found,
    ):
        yield found


@dataclass(frozen=True)
class Both:
    """Both databases, and the values that parameters get."""

    shared: Side
    alone: Side
    stored: Tenants
    dice: random.Random

    async def crossing(self, role: str, statement: str, values: Sequence[object]) -> str | None:
        """Say what of other tenants a statement shows or changes, if anything."""
        untouched = await self.shared.run(role, "UPDATE tool_server SET server = server", ())
        shared = await self.shared.run(role, statement, values)
        alone = await self.alone.run(role, statement, values)
        if shared.answer != alone.answer:
            return f"answers {shared.answer!r} instead of {alone.answer!r}"
        if shared.own != alone.own:
            return "stores something else because of other tenants"
        if shared.others is not None and shared.others != untouched.others:
            return "changes rows of other tenants"
        return None

    async def values_of(self, statement: str, first: Scope) -> Sequence[object]:
        """Choose values for a statement's parameters; $1 and $2 are this scope."""
        parameters = (await self.shared.session.prepare(statement)).get_parameters()
        chosen = [
            self._value(statement, number, parameter.name)
            for number, parameter in enumerate(parameters, 1)
        ]
        if _is_scoped(statement):
            chosen[:2] = [first.org, first.project]
        return chosen

    def _value(self, statement: str, number: int, kind: str) -> object:
        if kind.endswith("[]") or kind.startswith("_"):
            return self._array(statement, number, kind.strip("[]_"))
        column = _column_of(statement, number)
        known = self.stored.values.get(column or "", ())
        fitting = [value for value in known if isinstance(value, _PYTHON.get(kind, ()))]
        if fitting and not (_may_be_null(statement, number) and self.dice.random() < 0.5):
            return self.dice.choice(fitting)
        if kind in ("text", "varchar") and not _may_be_null(statement, number):
            return self.dice.choice(self._texts())
        return _DEFAULTS[kind](self.dice, self.stored)

    def _array(self, statement: str, number: int, kind: str) -> object:
        if kind in ("float4", "real"):
            return _VECTOR
        if re.search(rf"\${number}::text\[\]\) WITH ORDINALITY AS part \(vector", statement):
            return [str(_VECTOR)]
        column = _column_of(statement, number)
        known = self.stored.values.get(column or "", ())
        fitting = [value for value in known if isinstance(value, _PYTHON.get(kind, ()))]
        if kind in ("int4", "integer", "int8"):
            return [1, 2, 3]
        if kind == "text" and number == _IDS and "id::uuid" in statement:
            return [str(self.dice.choice(self.stored.values["pattern_id"])) for _ in range(3)]
        if kind == "uuid":
            fitting = fitting or [
                *self.stored.values["pattern_id"],
                *self.stored.values["record_id"],
            ]
            return [self.dice.choice(fitting) for _ in range(3)] if not column else fitting
        if kind == "text":
            return fitting if fitting else [self.dice.choice(self._texts()) for _ in range(3)]
        return [_DEFAULTS[kind](self.dice, self.stored) for _ in range(3)]

    def _texts(self) -> Sequence[str]:
        values = self.stored.values
        names = ("name", "alias", "callable_name", "tool_id", "term", "model")
        return [str(value) for each in names for value in values[each][:12]]


_PYTHON: Mapping[str, type | tuple[type, ...]] = {
    "uuid": UUID,
    "text": str,
    "varchar": str,
    "int4": int,
    "integer": int,
}
_DEFAULTS: Mapping[str, Callable[[random.Random, Tenants], object]] = {
    "text": lambda dice, _: None,
    "varchar": lambda dice, _: None,
    "uuid": lambda dice, stored: dice.choice(
        [*stored.values["pattern_id"], *stored.values["record_id"], *stored.values["workflow_id"]]
    ),
    "int4": lambda dice, _: dice.choice([1, 2, 50]),
    "int8": lambda dice, _: None,
    "bool": lambda dice, _: dice.random() < 0.7,
    "float4": lambda dice, _: 0.5,
    "float8": lambda dice, _: 0.5,
    "json": lambda dice, _: "{}",
    "jsonb": lambda dice, _: "{}",
    "timestamptz": lambda dice, _: NOON + timedelta(days=dice.choice([-900, 900])),
    "bytea": lambda dice, _: dice.randbytes(8),
    "interval": lambda dice, _: timedelta(days=1),
}


def _column_of(statement: str, number: int) -> str | None:
    """The column that a parameter is compared with or stored in."""
    compared = re.search(rf"(\w+) (?:=|<>|<|>|<=) (?:ANY \()?\${number}\b", statement)
    if compared:
        return compared.group(1)
    inserted = re.search(r"INSERT INTO \w+ \(([^)]*)\)\s*(?:SELECT|VALUES \()([^;]*)", statement)
    if inserted:
        columns = [each.strip() for each in inserted.group(1).split(",")]
        values = [each.strip() for each in inserted.group(2).split(",")]
        for column, value in zip(columns, values, strict=False):
            if re.match(rf"\${number}\b", value):
                return column
    return None


def _may_be_null(statement: str, number: int) -> bool:
    return bool(re.search(rf"\${number}(::\w+)? IS (NOT )?NULL", statement))


def _is_scoped(statement: str) -> bool:
    first = re.search(
        r"\borg = \$1\b|VALUES\s*\(\s*\$1, \$2|SELECT\s+\$1, \$2,|\(\$1, \$2,", statement
    )
    return first is not None


def _without(statement: str, *columns: str) -> str:
    """Drop conditions on the scope; the parameters stay."""
    for column in columns:
        statement = re.sub(rf"[\w.]*\b{column} = (\$\d+)\b", r"\1::text IS NOT NULL", statement)
    return statement


@pytest.fixture
async def both(stored: Tenants) -> AsyncGenerator[Both]:
    roles = await find_roles(stored.shared, "registry")
    async with (
        _side(stored.shared, stored, roles) as one,
        _side(stored.alone, stored, roles) as two,
    ):
        yield Both(one, two, stored, random.Random(16))  # noqa: S311 - no secret


@asynccontextmanager
async def _side(dsn: str, stored: Tenants, roles: Roles) -> AsyncGenerator[Side]:
    async with owner_session(dsn) as session:
        yield Side(session, stored, roles)


def _scoped() -> Iterator[tuple[str, str]]:
    return ((name, text) for name, text in QUERIES.items() if name not in ACROSS)


def test_every_query_is_of_a_scope_or_named_with_a_reason() -> None:
    unscoped = [name for name, text in QUERIES.items() if not _is_scoped(text)]
    assert sorted(unscoped) == sorted(ACROSS)


async def test_the_queries_alone_let_nothing_cross(both: Both) -> None:
    role, found = both.shared.roles.batch, dict[str, str]()
    for name, statement in _scoped():
        for _ in range(ROUNDS if name not in READS_ANOTHER else 0):
            values = await both.values_of(statement, SCOPE)
            crossing = await both.crossing(role, statement, values)
            if crossing is not None:
                found[name] = crossing
    assert found == {}


async def test_without_their_conditions_the_queries_would_let_much_cross(both: Both) -> None:
    role, found, tried = both.shared.roles.batch, set[str](), set[str]()
    for name, statement in _scoped():
        changed = _without(statement, "org", "project")
        if changed == statement:
            continue
        tried.add(name)
        for _ in range(3 * ROUNDS):
            values = await both.values_of(statement, SCOPE)
            if await both.crossing(role, changed, values) is not None:
                found.add(name)
                break
    # The others need more luck with their values, or compare the scope in yet another way.
    assert len(tried) > 80
    assert len(found) > 0.7 * len(tried), sorted(tried - found)


@pytest.mark.parametrize("columns", [("org",), ("project",), ("org", "project"), ()])
@pytest.mark.parametrize("reaching", [False, True])
async def test_without_their_conditions_row_security_lets_nothing_cross(
    both: Both, columns: Sequence[str], reaching: bool
) -> None:
    role = both.shared.roles.reach if reaching else both.shared.roles.application
    found: dict[str, str] = {}
    for name, statement in QUERIES.items():
        changed = _without(statement, *columns)
        if columns and changed == statement:
            continue
        # Without a change: as a handler that gave another's scope.
        first = both.dice.choice(OTHERS) if not columns else SCOPE
        values = await both.values_of(statement, first)
        crossing = await both.crossing(role, changed, values)
        if crossing is not None:
            found[name] = crossing
    assert found == {}
