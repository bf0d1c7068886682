"""Three tenants with the same names and code, and one of them alone, in two databases."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID, uuid4

import asyncpg
import numpy as np

from pml_common.contracts import ids
from pml_common.contracts.dns import Rename, SetVisibility
from pml_common.contracts.learner import ObservedRelation
from pml_common.contracts.scope import Scope
from pml_common.storage.schema import open_scoped_schema
from pml_common.storage.scoped import ScopedPools
from pml_registry.adapters.background_embedder import BackgroundEmbedder
from pml_registry.adapters.postgres_curation import PostgresCurationStore
from pml_registry.domain.curation import Suggestion
from pml_registry.domain.dependencies import NewDependency
from pml_registry.domain.evidence import Use
from pml_registry.domain.ranking import Target
from pml_registry.domain.trials import judged
from pml_registry.domain.visibility import Viewer
from pml_registry.entrypoints.bus.on_edges_observed import on_edges_observed
from pml_registry.entrypoints.bus.on_tools_listed import on_tools_listed
from pml_registry.ports.evidence import EvidenceStore, NewUse, Opinions
from services.registry.tests.support.builders import (
    AUTHOR,
    ELSEWHERE,
    NOON,
    OTHER_HASH,
    SCOPE,
    SIMILAR_HASH,
    analysed,
    edges,
    learning_update,
    listed,
    tool,
)
from services.registry.tests.support.hash_embedder import HashEmbedder
from services.registry.tests.support.owner import owner_session
from services.registry.tests.support.store_driver import StoreDriver
from services.registry.tests.support.stores import stores_on

SIBLING = Scope(org=SCOPE.org, project="other")
OTHERS = (ELSEWHERE, SIBLING)
"""Another organisation with the same project, and another project of the same organisation."""
STRANGER = "noor"
_PRIVATE_HASH, _UNNAMED_HASH, _RESERVED_HASH, _ONLY_HASH = (
    each * 16 for each in ("5ec7", "c1a0", "4e5e", "0511")
)
_TABLES = """
SELECT
    stored.tablename::text AS name,
    array_agg(found.column_name::text ORDER BY found.ordinal_position)
        FILTER (WHERE found.data_type <> 'timestamp with time zone') AS columns
FROM pg_tables stored
JOIN information_schema.columns found
    ON found.table_schema = 'registry' AND found.table_name = stored.tablename
WHERE stored.schemaname = 'registry'
GROUP BY stored.tablename
HAVING bool_or(found.column_name = 'org')
ORDER BY stored.tablename
"""


@dataclass(frozen=True)
class Tenants:
    """Databases: `shared` has the rows of SCOPE and of OTHERS, `alone` those of SCOPE. `values`:
    what is stored in a column of any table, by its name; `tables` have a scope, each with its
    columns that are no times."""

    shared: str
    alone: str
    tables: Mapping[str, Sequence[str]]
    values: Mapping[str, Sequence[object]]


@asynccontextmanager
async def tenants(dsn: str, administrator: str) -> AsyncGenerator[Tenants]:
    """Fill an empty database, and copy it; the copy is dropped at the end."""
    async with open_scoped_schema(dsn, "registry", "pml_registry") as pools:
        for scope in (SCOPE, *OTHERS):
            await fill(pools, scope)
    name = dsn.rpartition("/")[2]
    alone = f"{name}_alone"
    async with _session(administrator) as session:
        await session.execute(f"CREATE DATABASE {alone} TEMPLATE {name}")
    copied = f"{dsn.rpartition('/')[0]}/{alone}"
    try:
        async with owner_session(dsn) as session:
            tables = {row["name"]: row["columns"] for row in await session.fetch(_TABLES)}
            values = await _values(session, [*tables])
        async with owner_session(copied) as session:
            for table in tables:
                await session.execute(_others_of(f"DELETE FROM {table}"))  # noqa: S608 - ours
        yield Tenants(dsn, copied, tables, values)
    finally:
        async with _session(administrator) as session:
            await session.execute(f"DROP DATABASE {alone}")


async def fill(pools: ScopedPools, scope: Scope) -> None:
    """Store a row of this scope in every table."""
    stores, embedder = stores_on(pools), BackgroundEmbedder(HashEmbedder.model_name, HashEmbedder)
    registry, owner = StoreDriver(stores, embedder), Viewer(scope, AUTHOR)
    about = f"of {scope}"
    tools = [tool(one, f"Reads {about}") for one in ("fs:stat", "fs:read")]
    await on_tools_listed(listed(*tools, scope=scope), stores.tools, embedder)
    first = analysed(intent=f"ensure {about}", scope=scope)
    await registry.named("fs:ensure", first)
    better = analysed(SIMILAR_HASH, intent=f"make sure {about}", scope=scope)
    await registry.reserve("fs:ensure", better, update=True, tag="v1.1.0")
    await registry.settle(better)
    await registry.named("fs:print", analysed(OTHER_HASH, intent=f"print {about}", scope=scope))
    only = analysed(_ONLY_HASH, scope=scope)
    await registry.named(f"only:{scope.org}_{scope.project}", only)
    private = analysed(_PRIVATE_HASH, intent="a secret", scope=scope, principal=STRANGER)
    await registry.named("safe:secret", private)
    await registry.analysed(analysed(_UNNAMED_HASH, intent=f"unnamed {about}", scope=scope))
    for code_hash in (SIMILAR_HASH, OTHER_HASH, _PRIVATE_HASH, _UNNAMED_HASH):
        await registry.learned(learning_update(3, code_hash=code_hash, scope=scope))
    await registry.reserve("fs:later", analysed(_RESERVED_HASH, scope=scope))
    one, two = (ids.capability_id(scope, each) for each in (SIMILAR_HASH, OTHER_HASH))
    uses = ObservedRelation(from_=str(one), to="fs:read", type="contains")
    shown = edges(("fs:stat", "fs:read"), scope=scope).model_copy(update={"relations": (uses,)})
    await on_edges_observed([shown], stores.shown, stores.dependencies, lambda: NOON)
    for source, target in ((one, two), (ids.capability_id(scope, _PRIVATE_HASH), one)):
        needed = NewDependency(source, target, "dependency", "template")
        await stores.dependencies.add(scope, needed)
    curation = PostgresCurationStore(pools)
    unnamed = ids.capability_id(scope, _UNNAMED_HASH)
    await curation.keep(scope, [Suggestion(unnamed, "fs:unnamed", 0.5, ("a reason",), "rules")])
    await use(stores.evidence, scope, about)
    async with pools.transaction(scope) as session:
        for statement in (
            "UPDATE workflow_pattern SET shape_hash = 'shape' WHERE listed",
            "INSERT INTO tool_output (org, project, tool_id, definition_hash, shape) "
            "SELECT org, project, tool_id, definition_hash, '{}' FROM tool_schema",
        ):
            await session.execute(statement)
        until = NOON + timedelta(days=9)
        claim = "INSERT INTO curation_claims VALUES ($1, $2, $3)"
        await session.execute(claim, scope.org, scope.project, until)
    registry.is_away = True  # the messages about these wait to be published
    await registry.change("fs:ensure", Rename(name="fs:assure"), owner)
    hidden = SetVisibility(visibility="private")
    await registry.change("safe:secret", hidden, Viewer(scope, STRANGER))
    await embedder.aclose()


async def use(evidence: EvidenceStore, scope: Scope, about: str) -> None:
    """Store uses of two principals with opinions, and the deletion of a third one's."""
    kept, other, gone = uuid4(), uuid4(), uuid4()
    uses = [
        NewUse(
            use_id=uuid4(),
            workflow_id=workflow_id,
            use=Use(who, f"read {about}", (Target("tool", "fs:read"),), hour=0),
            model="hash",
            vector=np.asarray([1.0, 0.0], np.float32),
        )
        for workflow_id, who in ((kept, AUTHOR), (other, STRANGER), (gone, AUTHOR))
    ]
    await evidence.learn(scope, uuid4(), uses, judged)
    for workflow_id in (kept, other):
        await evidence.opine(scope, Opinions(workflow_id, useful=1.0, not_useful=0.0, judged_at=1))
    await evidence.erase(scope, gone)


async def _values(
    session: asyncpg.Connection, tables: Sequence[str]
) -> Mapping[str, Sequence[object]]:
    found: dict[str, set[object]] = {}
    for table in tables:
        if table == "inbox":
            continue  # ids of messages are the services' own
        for row in await session.fetch(f"SELECT * FROM {table}"):  # noqa: S608 - ours
            for column, value in row.items():
                if isinstance(value, str | UUID | int):
                    found.setdefault(column, set()).add(value)
    return {column: sorted(values, key=str) for column, values in found.items()}


def _others_of(statement: str) -> str:
    return f"{statement} WHERE (org, project) <> ('{SCOPE.org}', '{SCOPE.project}')"


@asynccontextmanager
async def _session(dsn: str) -> AsyncGenerator[asyncpg.Connection]:
    session = await asyncpg.connect(dsn)
    try:
        yield session
    finally:
        await session.close()
