"""Rows stored before terms were weighed."""

import pytest

from pml_common.contracts.registry import Discover
from pml_registry.domain.documents import tool_terms
from pml_registry.domain.terms import weigh
from pml_registry.entrypoints.bus.on_discover import on_discover
from pml_registry.entrypoints.bus.on_learning_updated import on_learning_updated
from pml_registry.entrypoints.bus.on_tools_listed import on_tools_listed
from pml_registry.ports.vectors import Embedder
from services.registry.tests.support.builders import (
    SCOPE,
    analysed,
    learning_update,
    listed,
    tool,
)
from services.registry.tests.support.store_driver import StoreDriver
from services.registry.tests.support.stores import Stores

pytestmark = pytest.mark.integration
_FORGET = """
UPDATE tool_schema SET terms = NULL;
UPDATE workflow_pattern SET terms = NULL
"""
_INDEXED = "SELECT count(DISTINCT id) FROM search_term WHERE kind = 'capability'"
_WEIGHED = "SELECT count(terms) FROM tool_schema"


async def _found(stores: Stores, embedder: Embedder) -> dict[str, float]:
    query = Discover(scope=SCOPE, intent="show one file")
    page = await on_discover(query, embedder, stores.index, stores.candidates)
    return {hit.name: hit.score for hit in page.hits}


async def _fill(stores: Stores, embedder: Embedder) -> None:
    await on_tools_listed(listed(tool("fs:show", "Shows one file.")), stores.tools, embedder)
    analysis = analysed(intent="print one file", tools=[])
    await StoreDriver(stores, embedder).named("fs:print", analysis)
    await on_learning_updated([learning_update()], stores.capabilities, embedder)


async def test_they_are_found_by_the_words_of_their_documents(
    stores: Stores, embedder: Embedder
) -> None:
    await _fill(stores, embedder)
    weighed = await _found(stores, embedder)
    await stores.pools.batch.execute(_FORGET)
    found = await _found(stores, embedder)
    assert list(found) == list(weighed) == ["show", "fs:print"]
    # Without its words, each would score by half of its cosine alone.
    assert found == pytest.approx(weighed, abs=0.1)


async def test_the_next_list_of_their_server_stores_terms(
    stores: Stores, embedder: Embedder
) -> None:
    await _fill(stores, embedder)
    await stores.pools.batch.execute(_FORGET)
    assert await stores.pools.batch.fetchval(_WEIGHED) == 0
    again = listed(tool("fs:show", "Shows one file."))
    assert await on_tools_listed(again, stores.tools, embedder) == ()
    assert await stores.pools.batch.fetchval(_WEIGHED) == 1


async def test_the_index_of_terms_follows_the_tools(stores: Stores, embedder: Embedder) -> None:
    for text in ("Shows one file.", "Weighs an elephant."):
        shown = tool("fs:show", text)
        await on_tools_listed(listed(shown), stores.tools, embedder)
        rows = await stores.pools.batch.fetch(
            "SELECT term, weight FROM search_term WHERE id = 'fs:show'"
        )
        assert {row["term"]: row["weight"] for row in rows} == pytest.approx(tool_terms(shown))
    await on_tools_listed(listed(), stores.tools, embedder)
    assert await stores.pools.batch.fetchval("SELECT count(*) FROM search_term") == 0


async def test_only_listed_capabilities_are_in_the_index_of_terms(
    stores: Stores, embedder: Embedder
) -> None:
    await _fill(stores, embedder)
    assert await stores.pools.batch.fetchval(_INDEXED) == 1
    await stores.pools.batch.execute("UPDATE workflow_pattern SET listed = false")
    assert await stores.pools.batch.fetchval(_INDEXED) == 0


async def test_sql_and_python_have_the_same_stems_and_weights(stores: Stores) -> None:
    text = "Reading generalised queries, planned and written: happily converted categories."
    rows = await stores.pools.batch.fetch("SELECT term, weight FROM weighed_terms(NULL, $1)", text)
    assert {row["term"]: row["weight"] for row in rows} == pytest.approx(weigh([(text, 1.0)]))
