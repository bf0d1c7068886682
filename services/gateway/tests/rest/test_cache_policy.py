"""PATCH /api/capabilities/{name}: setting the cache policy."""

import pytest

from pml_common.storage.scoped import ScopedPools
from services.gateway.tests.support.builders import ELSEWHERE, READ, WRITE, workflow
from services.gateway.tests.support.cached import MEMOIZE, PERSISTENT, allow, choose, learn, look
from services.gateway.tests.support.fakes import record
from services.gateway.tests.support.harness import Json, World

pytestmark = pytest.mark.integration


async def test_a_policy_is_shown_and_setting_it_again_keeps_results(
    w: World,
) -> None:
    chosen = await choose(w, PERSISTENT)
    assert chosen["cache"] == {**PERSISTENT, "ttl_s": None, "force": False, "revision": 1}
    shown = (await w.http.get("/api/capabilities/fs:look")).json()
    assert shown == chosen
    await look(w)
    assert await choose(w, PERSISTENT) == chosen
    assert (await look(w))["cached"]


@pytest.mark.parametrize("cache", [MEMOIZE, PERSISTENT])
async def test_another_policy_invalidates_all_results(
    w: World, pool: ScopedPools, cache: Json
) -> None:
    await choose(w, cache)
    await look(w)
    await choose(w, {"policy": "none"})
    assert w.peers.principals[-1] == "mira"
    assert "cached" not in await look(w)
    await choose(w, cache)
    assert "cached" not in await look(w)
    assert (await look(w))["cached"]
    async with pool.across() as conn:
        kept = await conn.fetch("SELECT DISTINCT revision FROM cached_result")
    assert [row["revision"] for row in kept] == ([3] if cache == PERSISTENT else [])


@pytest.mark.parametrize(
    ("body", "field", "why"),
    [
        ({}, "cache", "is missing"),
        ({"cache": {"policy": "always"}}, "cache.policy", "'none', 'memoize' or 'persistent'"),
        ({"cache": {"policy": "memoize", "ttl_s": 0}}, "cache.ttl_s", "greater than"),
        ({"cache": {"policy": "memoize", "ttl": 9}}, "cache.ttl", "unknown field"),
        ({"cache": {"policy": "memoize", "ttl_s": 700_000}}, "cache", "7 days"),
        ({"cache": {"policy": "none", "ttl_s": 9}}, "cache", "policy none takes neither"),
        ({"cache": MEMOIZE, "name": "fs:other"}, "name", "unknown field"),
    ],
)
async def test_an_invalid_policy_is_rejected_with_the_field(
    w: World, body: Json, field: str, why: str
) -> None:
    answer = await w.http.patch("/api/capabilities/fs:look", json=body)
    assert answer.status_code == 422
    (fault,) = answer.json()["error"]["fields"]
    assert fault["field"] == field
    assert why in fault["message"]
    assert "Value error" not in fault["message"]


async def test_the_policy_of_an_unknown_or_foreign_capability_cannot_be_set(w: World) -> None:
    w.peers.names["fs:theirs"] = record(workflow(scope=ELSEWHERE), "fs:theirs")
    for name in ("fs:theirs", "fs:nowhere"):
        answer = await w.http.patch(f"/api/capabilities/{name}", json={"cache": MEMOIZE})
        assert answer.status_code == 404
        assert answer.json()["error"]["kind"] == "not_found"


async def test_a_capability_with_effects_is_cached_only_if_forced(w: World) -> None:
    learn(w, tools_used=("fs:write",))
    w.peers.tools = (READ, WRITE)
    answer = await w.http.patch("/api/capabilities/fs:look", json={"cache": MEMOIZE})
    assert answer.status_code == 409
    await choose(w, {**MEMOIZE, "force": True})
    allow(w, ("fs:write", "allow"))
    await look(w)
    assert (await look(w))["cached"]
    assert w.servers.made == ["fs:read", "fs:write"]
