"""Rankings of a data set's tools: the registry's own, and plain ones beside it."""

import math
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import groupby
from unittest.mock import patch
from uuid import uuid4

import numpy as np

from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.registry import Discover
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition
from pml_common.storage.scoped import ScopedPools
from pml_registry.adapters.postgres_discovery import PostgresCandidateStore
from pml_registry.adapters.postgres_tools import PostgresToolStore
from pml_registry.adapters.postgres_vectors import PgvectorIndex
from pml_registry.domain.documents import tool_document
from pml_registry.domain.intents import WRITING, Part, parts_of
from pml_registry.domain.terms import terms_of
from pml_registry.entrypoints.bus.on_discover import on_discover
from pml_registry.entrypoints.bus.on_tools_listed import on_tools_listed
from pml_registry.ports.vectors import Embedder

Ranking = Callable[[str], Awaitable[Sequence[str]]]
"""Maps a query to tool ids, best first."""

DEPTH = 100
"""Ids of a ranking that count."""

SCOPE = Scope(org="bench", project="discover")
_K1, _B = 1.2, 0.75
_RRF = 60


async def rankings(
    tools: Sequence[ToolDefinition], embedder: Embedder, pools: ScopedPools
) -> Mapping[str, Ranking]:
    """Index the tools; return each ranking by its name."""
    cosine = await _cosine(tools, embedder)
    bm25 = _bm25(tools)
    registry = await _registry(tools, embedder, pools)
    return {
        "PML": registry,
        "no implied": _without_implied_step(registry),
        "BM25": bm25,
        "cosine": cosine,
        "RRF": _fused(bm25, cosine),
    }


async def indexed(
    tools: Sequence[ToolDefinition], embedder: Embedder, pools: ScopedPools
) -> tuple[PgvectorIndex, PostgresCandidateStore]:
    """List every tool in the registry's stores. No index is prepared: the nearest are exact."""
    store = PostgresToolStore(pools)
    by_server = sorted(tools, key=lambda tool: tool.server)
    for server, own in groupby(by_server, key=lambda tool: tool.server):
        listed = ToolsListed(scope=SCOPE, event_id=uuid4(), server=server, tools=tuple(own))
        await on_tools_listed(listed, store, embedder)
    return PgvectorIndex(pools), PostgresCandidateStore(pools)


async def _registry(
    tools: Sequence[ToolDefinition], embedder: Embedder, pools: ScopedPools
) -> Ranking:
    """The registry's handlers on its stores: every tool is listed, every query asked."""
    index, candidates = await indexed(tools, embedder, pools)

    async def ranked(query: str) -> Sequence[str]:
        asked = Discover(scope=SCOPE, intent=query, type="tool", limit=DEPTH)
        page = await on_discover(asked, embedder, index, candidates)
        return [str(hit.id) for hit in page.hits]

    return ranked


def _without_implied_step(registry: Ranking) -> Ranking:
    """The same without the step that saving at a path implies: what that rule adds."""

    def parts(intent: str) -> Sequence[Part]:
        return [part for part in parts_of(intent) if part.text != WRITING]

    async def ranked(query: str) -> Sequence[str]:
        with patch("pml_registry.entrypoints.bus.on_discover.parts_of", parts):
            return await registry(query)

    return ranked


async def _cosine(tools: Sequence[ToolDefinition], embedder: Embedder) -> Ranking:
    """The cosine of the whole query with each tool's document."""
    matrix = np.asarray((await embedder.embed([tool_document(tool) for tool in tools])).vectors)

    async def ranked(query: str) -> Sequence[str]:
        vector = np.asarray((await embedder.embed([query])).vectors[0])
        return _best(tools, (matrix @ vector).tolist())

    return ranked


def _bm25(tools: Sequence[ToolDefinition]) -> Ranking:
    """Okapi BM25 over the same documents and terms."""
    documents = [Counter(terms_of(tool_document(tool))) for tool in tools]
    having = Counter(term for document in documents for term in document)
    typical = sum(document.total() for document in documents) / len(documents)

    def weight(term: str, document: Counter[str]) -> float:
        idf = math.log(1 + (len(documents) - having[term] + 0.5) / (having[term] + 0.5))
        scale = _K1 * (1 - _B + _B * document.total() / typical)
        return idf * document[term] * (_K1 + 1) / (document[term] + scale)

    async def ranked(query: str) -> Sequence[str]:
        terms = sorted(set(terms_of(query)))
        return _best(tools, [sum(weight(t, each) for t in terms) for each in documents])

    return ranked


def _fused(*sources: Ranking) -> Ranking:
    """Reciprocal rank fusion of other rankings."""

    async def ranked(query: str) -> Sequence[str]:
        scores: dict[str, float] = defaultdict(float)
        for source in sources:
            for place, id_ in enumerate(await source(query), 1):
                scores[id_] += 1.0 / (_RRF + place)
        return sorted(scores, key=lambda id_: (-scores[id_], id_))[:DEPTH]

    return ranked


def _best(tools: Sequence[ToolDefinition], scores: Sequence[float]) -> Sequence[str]:
    order = sorted(zip(tools, scores, strict=True), key=lambda each: (-each[1], each[0].tool_id))
    return [tool.tool_id for tool, _ in order[:DEPTH]]
