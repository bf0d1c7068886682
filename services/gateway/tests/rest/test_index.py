"""The routes /api/index, and discovery by words alone."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from pml_common.bus.errors import QueryFailed
from pml_common.contracts import catalog
from pml_common.contracts.search_index import IndexState, Reindex, ReindexState, ShowIndex
from pml_common.testing.memory_bus import MemoryBus
from pml_gateway.ports import Caller
from services.gateway.tests.support.builders import SCOPE
from services.gateway.tests.support.harness import APPROVER, World, Worlds

pytestmark = pytest.mark.integration

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


class FakeIndex:
    """A registry with Qdrant, or with Postgres alone."""

    def __init__(self, *, is_external: bool = True) -> None:
        self.is_external = is_external
        self.asked: list[ShowIndex | Reindex] = []

    async def serve(self, w: World) -> None:
        """Answer both queries."""
        bus = MemoryBus(w.broker)
        await bus.serve(catalog.SHOW_INDEX, self.show)
        await bus.serve(catalog.REINDEX, self.reindex)

    async def show(self, query: ShowIndex) -> IndexState:
        self.asked.append(query)
        return IndexState(index="qdrant", pending=3)

    async def reindex(self, query: Reindex) -> IndexState:
        self.asked.append(query)
        if not self.is_external:
            raise QueryFailed("conflict", "there is no other index to rebuild")
        run = ReindexState(
            run_id=UUID(int=1),
            state="running",
            requested_by=query.principal,
            began_at=NOON,
            changed_at=NOON,
        )
        return IndexState(index="qdrant", reindex=run)


async def test_the_state_of_the_index_is_shown(world: Worlds) -> None:
    async with world() as w:
        await (index := FakeIndex()).serve(w)
        answer = await w.http.get("/api/index")
    assert (answer.status_code, answer.json()["pending"]) == (200, 3)
    assert index.asked == [ShowIndex(scope=SCOPE)]


async def test_an_approver_alone_rebuilds_the_index(world: Worlds) -> None:
    async with world() as w:
        await (index := FakeIndex()).serve(w)
        assert (await w.http.post("/api/index/reindex")).status_code == 401
        assert index.asked == []
        answer = await w.http.post("/api/index/reindex", headers=APPROVER)
    assert answer.status_code == 200
    assert answer.json()["reindex"]["state"] == "running"
    (asked,) = index.asked
    assert answer.json()["reindex"]["requested_by"] == getattr(asked, "principal", None)


async def test_an_index_in_postgres_is_not_rebuilt(world: Worlds) -> None:
    async with world() as w:
        await FakeIndex(is_external=False).serve(w)
        answer = await w.http.post("/api/index/reindex", headers=APPROVER)
    assert answer.status_code == 409
    assert "no other index" in answer.json()["error"]["message"]


async def test_results_by_words_alone_are_flagged_in_discovery_and_suggestions(
    world: Worlds,
) -> None:
    async with world() as w:
        whole = await w.http.post("/api/discover", json={"intent": "read"})
        suggested = await w.http.post("/api/execute", json={"intent": "read"})
        assert (whole.json()["degraded"], "degraded" in suggested.json()) == (False, False)
        w.peers.is_degraded = True
        page = await w.http.post("/api/discover", json={"intent": "read"})
        suggested = await w.http.post("/api/execute", json={"intent": "read"})
        result = await w.tools.call(Caller(SCOPE, "mira"), "pml_discover", {"intent": "read"})
    assert (page.json()["degraded"], suggested.json()["degraded"]) == (True, True)
    assert '"degraded":true' in result.model_dump_json().replace("\\", "").replace(" ", "")
