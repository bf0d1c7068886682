"""An external index (Qdrant's local mode) follows what is stored in Postgres, and is rebuilt."""

import asyncio
from dataclasses import replace
from uuid import uuid4

import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_common.bus.errors import QueryFailed
from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.search_index import Reindex, ShowIndex
from pml_common.contracts.tool import ToolDefinition
from pml_common.storage.scoped import ScopedPools
from pml_registry.adapters.qdrant import collection_of
from pml_registry.entrypoints.bus.on_index import on_reindex, on_show_index
from pml_registry.entrypoints.bus.on_learning_updated import on_learning_updated
from pml_registry.entrypoints.bus.on_tools_listed import on_tools_listed
from pml_registry.ports.vectors import Embedder, IndexUnavailable, Point, PointKey
from services.registry.tests.support.builders import SCOPE, analysed, learning_update, listed, tool
from services.registry.tests.support.store_driver import StoreDriver
from services.registry.tests.support.stores import Stores
from services.registry.tests.support.vectors import (
    QdrantSearch,
    Switchable,
    local_client,
    qdrant_search,
)

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore:Payload indexes have no effect"),
]

TOOLS = [tool(f"fs:read_{at}", f"Returns file {at}.") for at in range(5)]


def a_key(name: str) -> PointKey:
    return PointKey(SCOPE.org, SCOPE.project, "tool", f"fs:{name}")


@pytest.fixture
def pools(stores: Stores) -> ScopedPools:
    """An empty schema."""
    return stores.pools


@pytest.fixture
def qdrant() -> Switchable:
    """An empty Qdrant that can be away."""
    return Switchable(local_client())


@pytest.fixture
async def found(pools: ScopedPools, embedder: Embedder, qdrant: Switchable) -> QdrantSearch:
    """Five tools, in Postgres and in the index."""
    made = await qdrant_search(pools, embedder, qdrant.client, batch=2)
    await made.upkeep.catch_up()
    await _list(made, *TOOLS)
    await made.upkeep.catch_up()
    return made


async def _list(made: QdrantSearch, *tools: ToolDefinition) -> None:
    message: ToolsListed = listed(*tools).model_copy(update={"event_id": uuid4()})
    await on_tools_listed(message, made.stores.tools, made.serving)


async def _indexed(made: QdrantSearch) -> list[str]:
    keys, _ = await made.index.keys("hash", None, 100)
    return sorted(key.id for key in keys)


async def is_whole(made: QdrantSearch) -> bool:
    """Whether answers are complete: a client asks an index that was away only from time to time."""
    return not (await made.discover("returns file 3")).degraded


async def test_new_changed_and_removed_tools_reach_the_index(found: QdrantSearch) -> None:
    assert await _indexed(found) == [each.tool_id for each in TOOLS]
    page = await found.discover("returns file 3")
    assert (page.hits[0].name, page.degraded) == ("read_3", False)
    changed = tool("fs:read_0", "Draws a picture.")
    await _list(found, changed, *TOOLS[2:])
    assert await found.work.pending() > 0
    await found.upkeep.catch_up()
    assert await found.work.pending() == 0
    assert await _indexed(found) == [each.tool_id for each in (changed, *TOOLS[2:])]
    near = await found.search.index.nearest(
        SCOPE, "tool", "hash", (await found.serving.embed(["draws a picture"])).vectors[0], 1
    )
    assert [each.id for each in near] == ["fs:read_0"]


async def test_a_behaviour_is_in_the_index_while_it_is_listed(found: QdrantSearch) -> None:
    driver = StoreDriver(found.stores, found.serving)
    await driver.analysed(analysed(intent="show a file"))
    await found.upkeep.catch_up()
    assert len(await _indexed(found)) == len(TOOLS)
    await on_learning_updated(
        [learning_update(intent="show a file")], found.stores.capabilities, found.serving
    )
    await found.upkeep.catch_up()
    assert len(await _indexed(found)) == len(TOOLS) + 1
    page = await found.discover("show a file", type="capability")
    assert [hit.description for hit in page.hits] == ["show a file"]


async def test_an_index_that_is_away_is_told_later(found: QdrantSearch, qdrant: Switchable) -> None:
    qdrant.is_away = True
    await _list(found, *TOOLS[1:])
    for _ in range(2):
        with pytest.raises(IndexUnavailable, match="connection refused"):
            await found.upkeep.catch_up()
    qdrant.is_away = False
    assert TOOLS[0].tool_id in await _indexed(found)
    await found.upkeep.catch_up()
    assert TOOLS[0].tool_id not in await _indexed(found)


async def test_a_process_that_dies_after_the_index_has_a_change_repeats_it(
    found: QdrantSearch,
) -> None:
    await _list(found, *TOOLS[1:])
    async with found.work.turn() as turn:
        assert turn is not None
        (change,) = await turn.changes(9)
        await found.index.delete("hash", [change.key])
    assert await found.work.pending() == 1
    await found.upkeep.catch_up()
    assert (await found.work.pending(), len(await _indexed(found))) == (0, 4)


async def test_a_late_upsert_after_a_removal_loses(found: QdrantSearch) -> None:
    """One process has the turn; another, that learned of the same tool earlier, has to wait and
    then reads that it is removed."""
    later = replace(found.upkeep)
    await _list(found, *TOOLS, tool("fs:late", "Comes late."))
    async with found.work.turn() as turn:
        assert turn is not None
        (change,) = await turn.changes(9)
        assert change.vector is not None
        assert not await later.step()
        await _list(found, *TOOLS)
        await found.index.upsert("hash", [Point(change.key, change.vector)])
        await turn.forget([change])
    assert "fs:late" in await _indexed(found)
    await later.catch_up()
    assert await _indexed(found) == [each.tool_id for each in TOOLS]


async def test_several_processes_bring_the_index_up_to_date(
    pools: ScopedPools, embedder: Embedder, found: QdrantSearch, qdrant: Switchable
) -> None:
    others = [await qdrant_search(pools, embedder, qdrant.client, batch=1) for _ in range(2)]
    running = [asyncio.create_task(each.upkeep.run()) for each in (found, *others)]
    await _list(found, *TOOLS[2:], tool("fs:new", "New."))

    async def is_done() -> bool:
        return await found.work.pending() == 0

    await eventually(is_done)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    assert await _indexed(found) == ["fs:new", *[each.tool_id for each in TOOLS[2:]]]


async def test_a_rebuild_stores_all_and_removes_what_postgres_does_not_have(
    found: QdrantSearch,
) -> None:
    vector = (await found.serving.embed(["a ghost"])).vectors[0]
    await found.index.upsert("hash", [Point(a_key("ghost"), vector)])
    await found.index.delete("hash", [a_key("read_1")])
    for _ in range(2):
        run = await found.work.request_run("mira")
        assert (run.state, run.requested_by) == ("running", "mira")
        assert (await found.work.request_run("another")).run_id == run.run_id
        await found.upkeep.catch_up()
        assert await _indexed(found) == [each.tool_id for each in TOOLS]
    ended = await found.work.last_run()
    assert ended is not None
    assert (ended.state, ended.total, ended.stored, ended.removed) == ("done", 5, 5, 0)


async def test_a_rebuild_goes_on_where_a_killed_process_left_it(
    found: QdrantSearch, qdrant: Switchable
) -> None:
    await found.index.drop("hash")
    await found.work.request_run("mira")
    assert await found.upkeep.step()
    assert await found.upkeep.step()
    qdrant.is_away = True
    with pytest.raises(IndexUnavailable):
        await found.upkeep.catch_up()
    stuck = await found.work.last_run()
    assert stuck is not None
    assert (stuck.state, stuck.stored) == ("running", 2)
    assert "connection refused" in (stuck.problem or "")
    assert (await found.discover("returns file 3")).degraded
    qdrant.is_away = False
    await replace(found.upkeep).catch_up()
    ended = await found.work.last_run()
    assert ended is not None
    assert (ended.state, ended.stored, ended.problem) == ("done", 5, None)
    await eventually(lambda: is_whole(found))


async def test_an_index_that_lost_its_vectors_is_not_searched_until_it_has_them(
    found: QdrantSearch, qdrant: Switchable
) -> None:
    await qdrant.client.delete_collection(collection_of("hash"))
    lost = await found.discover("returns file 3")
    assert (lost.hits[0].name, lost.degraded) == ("read_3", True)
    await found.work.request_run("mira")
    while await found.upkeep.step():
        run = await found.work.last_run()
        assert run is not None
        assert run.state == "done" or (await found.discover("returns file 3")).degraded
    await eventually(lambda: is_whole(found))


async def test_what_was_stored_before_qdrant_is_brought_to_it(
    pools: ScopedPools, embedder: Embedder, found: QdrantSearch
) -> None:
    empty = Switchable(local_client())
    other = await qdrant_search(pools, embedder, empty.client)
    assert (await other.discover("returns file 3")).degraded
    await other.work.request_run("mira")
    await other.upkeep.catch_up()
    assert await _indexed(other) == await _indexed(found)


async def test_an_index_that_is_in_use_no_more_is_noted_nothing(
    pools: ScopedPools, embedder: Embedder, found: QdrantSearch, qdrant: Switchable
) -> None:
    await _list(found, *TOOLS[1:])
    await found.work.abandon(3600.0)
    assert await found.work.pending() == 1
    await found.work.abandon(0.0)
    await _list(found, *TOOLS[2:])
    assert await found.work.pending() == 0
    back = await qdrant_search(pools, embedder, qdrant.client)
    assert (await back.discover("returns file 3")).degraded
    await back.upkeep.catch_up()
    assert await _indexed(back) == [each.tool_id for each in TOOLS[2:]]


async def test_operators_see_the_index_and_rebuild_it(found: QdrantSearch) -> None:
    models, work = found.search.models, found.search.work
    shown = await on_show_index(ShowIndex(scope=SCOPE), models, work)
    assert (shown.index, shown.pending) == ("qdrant", 0)
    assert [(each.name, each.dimension, each.complete) for each in shown.models] == [
        ("hash", 384, True)
    ]
    begun = await on_reindex(Reindex(scope=SCOPE, principal="mira"), models, work)
    assert begun.reindex is not None
    assert (begun.reindex.state, begun.reindex.requested_by) == ("running", "mira")


async def test_an_index_in_postgres_needs_no_rebuild(found: QdrantSearch) -> None:
    models = found.search.models
    shown = await on_show_index(ShowIndex(scope=SCOPE), models, None)
    assert (shown.index, shown.reindex) == ("postgres", None)
    with pytest.raises(QueryFailed, match="no other index to rebuild"):
        await on_reindex(Reindex(scope=SCOPE, principal="mira"), models, None)
