"""Speed of discovery and of names by the number of records: the requirements P7 and P8.

Fills an embedded Postgres with synthetic capabilities, and a tenth as many tools, in five scopes
(four in five records in the one that is measured), seeded. Vectors lie around common topics, words
are distributed as in a natural language. Every discovery runs through the registry's handler;
embedding is replaced by a table, since its time does not depend on the records. The raw index query
is what a discovery asks its indexes, as bare SQL: the nearest by meaning and the postings of each
word, of tools and of capabilities. Reading candidates, ranking and hits are what comes on top.
"with use" is a discovery in a scope that has as many uses as are kept, and ranks by them.
`uv run python bench/discover_scale.py [--sizes 1000 10000 100000] [--rounds N]`
"""

import argparse
import asyncio
import statistics
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from time import perf_counter
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).parent.parent))  # when run as a script

import numpy as np
from discovery.database import running_databases
from discovery.synthetic import SCOPE, Synthetic, fill, registrations

from libs.pml_local.tests.support.databases import migrated
from pml_common.contracts.registry import Discover, ResolveCapability
from pml_common.storage.columns import scope_columns
from pml_common.storage.queries import load_queries
from pml_common.storage.schema import open_scoped_schema
from pml_common.storage.scoped import ScopedPools
from pml_registry.adapters.postgres_capabilities import PostgresCapabilityStore
from pml_registry.adapters.postgres_discovery import PostgresCandidateStore
from pml_registry.adapters.postgres_evidence import PostgresEvidenceStore
from pml_registry.adapters.postgres_records import PostgresRecordStore
from pml_registry.adapters.postgres_vectors import PgvectorIndex
from pml_registry.application.evidence import Evidence
from pml_registry.application.resolution import Resolution
from pml_registry.domain.evidence import MOST_USES, Use
from pml_registry.domain.intents import TERM_CANDIDATES, WHOLE_CANDIDATES, parts_of
from pml_registry.domain.ranking import Kind, Target
from pml_registry.domain.trials import Standing
from pml_registry.entrypoints.bus.on_discover import on_discover
from pml_registry.entrypoints.bus.on_execution_analyzed import on_execution_analyzed
from pml_registry.entrypoints.bus.on_resolve_capability import on_resolve_capability
from pml_registry.ports.evidence import NewUse
from services.registry.tests.support.stores import version_keys

KINDS: Sequence[Kind] = ("tool", "capability")
SIZES = (1_000, 10_000, 100_000)
_SQL = load_queries("pml_registry")
_BATCH = 50
_POSTINGS = """
SELECT heaviest.id, heaviest.weight
FROM unnest($4::text[]) AS asked (term)
CROSS JOIN LATERAL (
    SELECT found.id, found.weight
    FROM search_term found
    WHERE found.org = $1 AND found.project = $2 AND found.kind = $3 AND found.term = asked.term
    ORDER BY found.weight DESC, found.id DESC
    LIMIT $5
) AS heaviest
"""


async def measure(pools: ScopedPools, data: Synthetic, size: int, rounds: int) -> dict[str, float]:
    """Milliseconds of each operation at this size, and registrations per second."""
    index, candidates = PgvectorIndex(pools), PostgresCandidateStore(pools)
    signing = version_keys(hashing=data)
    capabilities = PostgresCapabilityStore(pools, signing)
    resolution = Resolution(PostgresRecordStore(pools, signing), capabilities)
    intents = data.intents(rounds)
    names = data.names(size, 20 * rounds)

    evidence = await _with_uses(pools, data, index)

    async def discover(at: int) -> None:
        page = await on_discover(Discover(scope=SCOPE, intent=intents[at]), data, index, candidates)
        assert page.total > 0

    async def discover_by_use(at: int) -> None:
        asked = Discover(scope=SCOPE, intent=intents[at])
        page = await on_discover(asked, data, index, candidates, evidence)
        assert any(hit.from_use for hit in page.hits)

    async def nearest(at: int) -> None:
        vector = list((await data.embed([intents[at]])).vectors[0])
        async with pools.across() as session:
            for kind in ("tool", "capability"):
                where = (*scope_columns(SCOPE), kind, data.model_name, vector, WHOLE_CANDIDATES)
                await session.fetch(_SQL["nearest-vectors"], *where)

    async def postings(at: int) -> None:
        terms = list(parts_of(intents[at])[0].terms)
        async with pools.across() as session:
            for kind in ("tool", "capability"):
                await session.fetch(_POSTINGS, *scope_columns(SCOPE), kind, terms, TERM_CANDIDATES)

    async def resolve(at: int) -> None:
        found = ResolveCapability(scope=SCOPE, reference=names[at])
        assert (await on_resolve_capability(found, resolution)).name == names[at]

    by_meaning, by_words, found, by_use = await _times(
        (nearest, postings, discover, discover_by_use), rounds
    )
    (resolved,) = await _times((resolve,), len(names))
    return {
        "raw p50 ms": statistics.median(by_meaning) + statistics.median(by_words),
        "of which by meaning": statistics.median(by_meaning),
        "discover p50 ms": statistics.median(found),
        "discover p99 ms": _p99(found),
        "with use p50 ms": statistics.median(by_use),
        "name p50 ms": statistics.median(resolved),
        "name p99 ms": _p99(resolved),
        "registered/s": await _registration_rate(capabilities, data, size),
    }


async def _with_uses(pools: ScopedPools, data: Synthetic, index: PgvectorIndex) -> Evidence:
    """Store as many uses as are kept, by forty principals, of what is near their intents, and let
    rankings use them."""
    store, uses = PostgresEvidenceStore(pools), list[NewUse]()
    for at, intent in enumerate(data.intents(MOST_USES)):
        vector = list((await data.embed([intent])).vectors[0])
        served = [
            Target(kind, near.id)
            for kind in KINDS
            for near in await index.nearest(SCOPE, kind, data.model_name, vector, 2)
        ]
        use = Use(f"agent-{at % 40}", intent, tuple(served), at // 40)
        embedded = np.asarray(vector, np.float32)
        uses.append(NewUse(uuid4(), uuid4(), use, data.model_name, embedded))
    await store.learn(SCOPE, uuid4(), uses, lambda trials, before: Standing(used=True))
    return Evidence(store)


async def _registration_rate(
    capabilities: PostgresCapabilityStore, data: Synthetic, size: int
) -> float:
    """New capabilities a second, one consumer, in batches as the bus delivers them."""
    analyses = registrations(size, 6 * _BATCH)
    began = perf_counter()
    for start in range(0, len(analyses), _BATCH):
        batch = analyses[start : start + _BATCH]
        handled = await on_execution_analyzed(batch, capabilities, data, data)
        assert not handled.failed
    return len(analyses) / (perf_counter() - began)


async def _times(
    operations: Sequence[Callable[[int], Awaitable[None]]], rounds: int
) -> Sequence[Sequence[float]]:
    """Milliseconds of each operation's rounds. They take turns, so that what else the machine does
    falls on all of them; before, each is done some times."""
    times: list[list[float]] = [[] for _ in operations]
    for at in [*range(min(rounds, 50)), *range(rounds)]:
        for operation, own in zip(operations, times, strict=True):
            began = perf_counter()
            await operation(at)
            own.append((perf_counter() - began) * 1e3)
    return [own[-rounds:] for own in times]


def _p99(times: Sequence[float]) -> float:
    return sorted(times)[int(len(times) * 0.99)]


async def run(sizes: Sequence[int], rounds: int) -> None:
    """Print a line for each size, and the ratios that are required."""
    data = Synthetic(max(sizes))
    found: list[dict[str, float]] = []
    async with (
        running_databases() as databases,
        databases.empty() as dsn,
        open_scoped_schema(await migrated(dsn, "registry"), "registry", "pml_registry") as pools,
    ):
        begin = 0
        for size in sizes:
            began = perf_counter()
            await fill(dsn, data, begin, size)
            print(f"{size:>7} records, filled in {perf_counter() - began:.0f} s", flush=True)
            found.append(await measure(pools, data, size, rounds))
            print("  " + "   ".join(f"{k} {v:.2f}" for k, v in found[-1].items()), flush=True)
            begin = size
    first, last = found[0], found[-1]
    p7 = last["discover p50 ms"] / last["raw p50 ms"]
    p8 = last["discover p50 ms"] / first["discover p50 ms"]
    with_use = last["with use p50 ms"] / last["raw p50 ms"]
    print(f"P7 discover / raw at {sizes[-1]}: {p7:.2f} (required: at most 2)")
    print(f"the same with use: {with_use:.2f}")
    print(f"P8 discover at {sizes[-1]} / at {sizes[0]}: {p8:.2f} (required: at most 2.5)")
    print(f"name to version p99: {last['name p99 ms']:.1f} ms (required: at most 20)")


def main() -> None:
    """Parse the sizes and run."""
    parser = argparse.ArgumentParser(description="Speed of discovery by the number of records.")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--rounds", type=int, default=100)
    wanted = parser.parse_args()
    asyncio.run(run(sorted(wanted.sizes), wanted.rounds))


if __name__ == "__main__":
    main()
