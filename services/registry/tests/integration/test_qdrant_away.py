"""Qdrant goes away in the middle of a search load, and comes back without its data."""

import asyncio
from functools import partial
from uuid import uuid4

import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_common.contracts.registry import DiscoveryPage
from pml_common.storage.schema import open_scoped_schema
from pml_registry.adapters.qdrant import collection_of
from pml_registry.entrypoints.bus.on_tools_listed import on_tools_listed
from pml_registry.ports.vectors import Embedder
from services.registry.tests.support.builders import listed, tool
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

TOOLS = [tool(f"fs:read_{at}", f"Returns file number{at}.") for at in range(20)]
GONE = TOOLS[7]
CLIENTS, ASKED = 4, 120


class Load:
    """Clients that ask one after another, in turns; pages in the order they came."""

    def __init__(self, found: QdrantSearch) -> None:
        self._found = found
        self.pages: list[DiscoveryPage] = []

    async def ask(self) -> None:
        """Ask for every tool, again and again."""
        for at in range(ASKED // CLIENTS):
            self.pages.append(await self._found.discover(f"returns file number{at % len(TOOLS)}"))

    async def after(self, count: int) -> None:
        """Wait until so many answers came."""
        await eventually(lambda: len(self.pages) >= count)


async def test_qdrant_gone_in_the_middle_of_a_search_load(
    postgres_dsn: str, embedder: Embedder
) -> None:
    qdrant = Switchable(local_client())
    async with open_scoped_schema(postgres_dsn, "registry", "pml_registry") as pools:
        found = await qdrant_search(pools, embedder, qdrant.client)
        await on_tools_listed(listed(*TOOLS), found.stores.tools, found.serving)
        await found.upkeep.catch_up()
        updating = asyncio.create_task(found.upkeep.run())
        load = Load(found)
        asking = [asyncio.create_task(load.ask()) for _ in range(CLIENTS)]

        await load.after(ASKED // 4)
        qdrant.is_away = True
        left = [each for each in TOOLS if each != GONE]
        message = listed(*left).model_copy(update={"event_id": uuid4()})
        await on_tools_listed(message, found.stores.tools, found.serving)
        removed_at = len(load.pages) + CLIENTS
        await asyncio.gather(*asking)  # no error

        assert len(load.pages) == ASKED
        assert not load.pages[0].degraded
        assert all(page.degraded for page in load.pages[removed_at:])
        assert all(page.hits for page in load.pages)

        await _lose_everything(qdrant)
        qdrant.is_away = False
        assert (await found.discover("returns file number3")).degraded
        await found.work.request_run("mira")

        async def recovered(intent: str) -> DiscoveryPage | None:
            page = await found.discover(intent)
            return None if page.degraded else page

        pages = [await eventually(partial(recovered, each.description)) for each in TOOLS]
        updating.cancel()
        await asyncio.gather(updating, return_exceptions=True)
        keys, _ = await found.index.keys("hash", None, 100)
    assert {key.id for key in keys} == {each.tool_id for each in left}
    shown = {hit.id for page in (*load.pages[removed_at:], *pages) for hit in page.hits}
    assert GONE.tool_id not in shown


async def _lose_everything(qdrant: Switchable) -> None:
    """Lose the data while nobody reaches it."""
    qdrant.is_away = False
    await qdrant.client.delete_collection(collection_of("hash"))
    qdrant.is_away = True
