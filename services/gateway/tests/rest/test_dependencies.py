"""Routes of dependencies and of the graph."""

import pytest

from pml_common.contracts.dependencies import FindPath, ShowHypergraph
from services.gateway.tests.support.builders import ELSEWHERE, workflow
from services.gateway.tests.support.fakes import record
from services.gateway.tests.support.harness import World, Worlds

pytestmark = pytest.mark.integration

DEPLOY, BUILD = "ci:deploy", "ci:build"


def _know(w: World) -> None:
    w.peers.names |= {
        DEPLOY: record(workflow(), DEPLOY),
        BUILD: record(workflow(), BUILD, "cd" * 32),
        "ci:theirs": record(workflow(scope=ELSEWHERE), "ci:theirs"),
    }


async def test_ac10_a_dependency_is_created_as_a_template(world: Worlds) -> None:
    async with world() as w:
        _know(w)
        path = f"/api/capabilities/{DEPLOY}/dependencies"
        body = {"to_capability_id": BUILD, "edge_type": "dependency"}
        made = await w.http.post(path, json=body)
        assert made.status_code == 201
        assert made.json()["created"] is True
        dependency = made.json()["dependency"]
        assert (dependency["edge_type"], dependency["edge_source"]) == ("dependency", "template")
        assert (dependency["from_name"], dependency["to_name"]) == (DEPLOY, BUILD)
        again = await w.http.post(path, json=body)
        assert (again.status_code, again.json()["created"]) == (200, False)
        observed = await w.http.post(
            path, json={**body, "edge_type": "contains", "edge_source": "observed"}
        )
        assert observed.json()["dependency"]["edge_source"] == "observed"


async def test_ac10_a_dependency_that_cannot_be_is_refused_with_the_reason(world: Worlds) -> None:
    async with world() as w:
        _know(w)
        path = f"/api/capabilities/{DEPLOY}/dependencies"
        body = {"to_capability_id": BUILD, "edge_type": "dependency"}
        await w.http.post(path, json=body)
        back = {"to_capability_id": DEPLOY, "edge_type": "dependency"}
        refused = await w.http.post(f"/api/capabilities/{BUILD}/dependencies", json=back)
        assert refused.status_code == 409
        assert "cycle" in refused.json()["error"]["message"]
        assert (await w.http.post(path, json=back)).status_code == 422
        for unknown in ("ci:nobody", "ci:theirs"):
            absent = await w.http.post(path, json={**body, "to_capability_id": unknown})
            assert absent.status_code == 404
        for field, value in (("edge_type", "provides"), ("edge_source", "manual")):
            invalid = await w.http.post(path, json={**body, field: value})
            assert invalid.status_code == 422
            assert [one["field"] for one in invalid.json()["error"]["fields"]] == [field]


async def test_ac09_dependencies_are_listed_by_direction(world: Worlds) -> None:
    async with world() as w:
        _know(w)
        body = {"to_capability_id": BUILD, "edge_type": "dependency"}
        await w.http.post(f"/api/capabilities/{DEPLOY}/dependencies", json=body)
        path = f"/api/capabilities/{BUILD}/dependencies"
        totals = {
            direction: (await w.http.get(path, params={"direction": direction})).json()["total"]
            for direction in ("in", "out", "both")
        }
        assert totals == {"in": 1, "out": 0, "both": 1}
        page = (await w.http.get(path)).json()
        assert page["capability_id"] == str(w.peers.names[BUILD].capability_id)
        assert page["dependencies"][0]["from_name"] == DEPLOY
        assert (await w.http.get(path, params={"direction": "up"})).status_code == 422
        absent = await w.http.get("/api/capabilities/ci:theirs/dependencies")
        assert absent.status_code == 404


async def test_ac11_a_dependency_is_removed(world: Worlds) -> None:
    async with world() as w:
        _know(w)
        path = f"/api/capabilities/{DEPLOY}/dependencies"
        for edge_type in ("dependency", "contains", "sequence"):
            await w.http.post(path, json={"to_capability_id": BUILD, "edge_type": edge_type})
        one = await w.http.delete(f"{path}/{BUILD}", params={"edge_type": "contains"})
        assert (one.status_code, one.json()) == (200, {"removed": 1})
        assert (await w.http.delete(f"{path}/{BUILD}")).json() == {"removed": 2}
        assert (await w.http.delete(f"{path}/{BUILD}")).status_code == 404
        assert (await w.http.get(path)).json()["total"] == 0


async def test_ac12_the_hypergraph_has_edges_between_capabilities(world: Worlds) -> None:
    async with world() as w:
        _know(w)
        body = {"to_capability_id": BUILD, "edge_type": "dependency"}
        await w.http.post(f"/api/capabilities/{DEPLOY}/dependencies", json=body)
        shown = await w.http.get("/api/graph/hypergraph", params={"limit": 7, "edge_limit": 9})
        assert shown.status_code == 200
        (edge,) = shown.json()["edges"]
        assert {edge["from"], edge["to"]} == {node["id"] for node in shown.json()["nodes"]}
        (asked,) = w.peers.graph.asked
        assert isinstance(asked, ShowHypergraph)
        assert (asked.limit, asked.edge_limit) == (7, 9)
        assert asked.principal is not None
        assert (await w.http.get("/api/graph/hypergraph?limit=0")).status_code == 422


async def test_a_path_leads_from_one_node_to_another(world: Worlds) -> None:
    async with world() as w:
        _know(w)
        body = {"to_capability_id": BUILD, "edge_type": "dependency"}
        await w.http.post(f"/api/capabilities/{DEPLOY}/dependencies", json=body)
        found = await w.http.get("/api/graph/path", params={"from": DEPLOY, "to": BUILD})
        assert [edge["type"] for edge in found.json()["edges"]] == ["dependency"]
        absent = await w.http.get("/api/graph/path", params={"from": BUILD, "to": DEPLOY})
        assert absent.status_code == 404
        assert [type(asked) for asked in w.peers.graph.asked] == [FindPath, FindPath]


async def test_ac08_the_count_of_dependencies_is_asked_for_with_the_details(world: Worlds) -> None:
    async with world() as w:
        _know(w)
        known = w.peers.names[DEPLOY]
        w.peers.names[DEPLOY] = known.model_copy(update={"dependencies_count": 3})
        assert (await w.http.get(f"/api/capabilities/{DEPLOY}")).json()["dependencies_count"] == 3
        page = (await w.http.get("/api/capabilities")).json()
        assert [each["dependencies_count"] for each in page["capabilities"]] == [3, None]
