"""Routes that draw capabilities."""

import pytest

from pml_common.contracts.structure import StaticStructure
from services.gateway.tests.support.builders import ELSEWHERE, workflow
from services.gateway.tests.support.drawn import NESTED, called, node, trace
from services.gateway.tests.support.fakes import record
from services.gateway.tests.support.harness import World, Worlds

pytestmark = pytest.mark.integration

NAME, OTHER = "fs:report", "fs:tidy"


def _know(w: World) -> None:
    own = record(workflow(), NAME)
    w.peers.names |= {
        NAME: own.model_copy(update={"structure": StaticStructure(nodes=(node("n1", "fs:read"),))}),
        OTHER: record(workflow(), OTHER, "cd" * 32),
        "fs:theirs": record(workflow(scope=ELSEWHERE), "fs:theirs", "ef" * 32),
        "fs:shared": record(workflow(scope=ELSEWHERE), "fs:shared", "12" * 32).model_copy(
            update={"visibility": "public"}
        ),
    }
    for at in (30, 10, 20):
        run = trace(own.capability_id, at, at + 8, called("fs:read", at + 1, at + 2))
        inside = trace(NESTED, at + 3, at + 5, parent=run, name=OTHER)
        w.peers.traces += (run, inside)


async def test_ac6_a_capability_is_drawn_by_its_structure_and_by_its_runs(world: Worlds) -> None:
    async with world() as w:
        _know(w)
        drawn = await w.http.get(f"/api/capabilities/{NAME}/definition")
        view = drawn.json()
        assert [each["data"]["label"] for each in view["elements"]["nodes"]] == [NAME, "fs:read"]
        (contains,) = view["elements"]["edges"]
        assert (contains["data"]["type"], contains["classes"]) == ("contains", "contains")
        runs = (await w.http.get(f"/api/capabilities/{NAME}/invocations")).json()
        labels = {each["data"]["id"] for each in runs["elements"]["nodes"]}
        assert labels == {f"{name}_{at}" for name in (NAME, "fs:read", OTHER) for at in (1, 2, 3)}
        first = {each["data"]["id"]: each["data"] for each in runs["elements"]["nodes"]}
        assert first["fs:read_1"]["parent"] == first["fs:tidy_1"]["parent"] == "fs:report_1"
        assert {each["data"]["id"] for each in runs["elements"]["edges"]} == {
            f"fs:read_{at}>fs:tidy_{at}" for at in (1, 2, 3)
        }
        assert (runs["runs"], runs["total"], runs["complete"]) == (3, 3, True)
        own = str(w.peers.names[NAME].capability_id)
        assert view["capability_id"] == runs["capability_id"] == own


async def test_dependencies_of_the_registry_are_in_the_definition(world: Worlds) -> None:
    async with world() as w:
        _know(w)
        body = {"to_capability_id": OTHER, "edge_type": "dependency"}
        await w.http.post(f"/api/capabilities/{NAME}/dependencies", json=body)
        view = (await w.http.get(f"/api/capabilities/{NAME}/definition")).json()
        edges = {each["data"]["type"]: each["data"] for each in view["elements"]["edges"]}
        assert edges["dependency"]["target"] == str(w.peers.names[OTHER].capability_id)
        assert edges["dependency"]["edge_source"] == "template"


async def test_runs_are_drawn_in_pages_and_within_limits(world: Worlds) -> None:
    async with world() as w:
        _know(w)
        path = f"/api/capabilities/{NAME}/invocations"
        page = (await w.http.get(path, params={"limit": 2, "offset": 1})).json()
        assert (page["runs"], page["total"]) == (2, 3)
        starts = [
            each["data"]["started_at"]
            for each in page["elements"]["nodes"]
            if "parent" not in each["data"] or each["data"]["parent"] is None
        ]
        assert starts == [10, 20]
        cut = (await w.http.get(path, params={"node_limit": 2, "edge_limit": 0})).json()
        assert (len(cut["elements"]["nodes"]), cut["elements"]["edges"]) == (2, [])
        assert not cut["complete"]
        both = {"cursor": "abc", "offset": 1}
        for params in ({"limit": 51}, {"limit": 0}, {"node_limit": 0}, both):
            assert (await w.http.get(path, params=params)).status_code == 422


async def test_a_capability_of_another_scope_is_drawn_only_if_it_is_shared(world: Worlds) -> None:
    async with world() as w:
        _know(w)
        for view in ("definition", "invocations"):
            unknown = await w.http.get(f"/api/capabilities/fs:theirs/{view}")
            assert unknown.status_code == 404
            shared = await w.http.get(f"/api/capabilities/fs:shared/{view}")
            assert shared.status_code == 200, shared.text
            assert shared.json()["name"] == "fs:shared"
        asked = [query.scope for query in w.peers.trace_queries]
        assert ELSEWHERE not in asked, "their runs are not ours to see"
        assert None not in w.peers.principals
