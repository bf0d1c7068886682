"""A capability drawn by its structure and by its runs, and the edges that these show."""

import asyncio
from collections.abc import Sequence
from typing import cast

import pytest

from libs.pml_local.tests.support.harness import eventually
from tests.e2e.harness import Json, StackHarness

pytestmark = pytest.mark.e2e

INNER = """\
const { path }: { path: string } = args;
return await mcp.counting.peek({ path });
"""
OUTER = """\
const { path, n }: { path: string; n: number } = args;
const both = await Promise.all([mcp.counting.linger({ n }), mcp.counting.linger({ n: n + 1 })]);
const nested = await capabilities.drawn_inner({ path });
return { both, nested };
"""
FIRST = 64_000


async def _run(harness: StackHarness, n: int, **program: object) -> None:
    """Run a program; its two parallel calls return when both are under way."""
    args = {"path": str(harness.folder), "n": n}
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(
            harness.http.post("/api/execute", json={"args": args, **program}, timeout=60.0)
        )
        for each in (n, n + 1):
            await eventually((harness.folder / f"lingers-{each}").exists)
        harness.release(n)
        harness.release(n + 1)
    answer = asked.result()
    assert answer.json()["status"] == "success", answer.text


async def test_ac6_ac7_three_runs_are_drawn_as_one_definition_and_three_invocations(
    harness: StackHarness,
) -> None:
    path = {"path": str(harness.folder)}
    await harness.execute(INNER, name="drawn:inner", args=path, intent="peek once")
    await _run(harness, FIRST, code=OUTER, name="drawn:outer", intent="linger twice and peek")
    for n in (FIRST + 2, FIRST + 4):
        await _run(harness, n, capability="drawn:outer")

    async def drawn() -> Json | None:
        found = await harness.http.get("/api/capabilities/drawn:outer/invocations")
        view: Json = found.json()
        return view if found.status_code == 200 and view["total"] == 3 else None

    view = await eventually(drawn)
    nodes = {str(each["id"]): each for each in _data(view, "nodes")}
    assert len([each for each in nodes if each.startswith("drawn:outer_")]) == 3
    assert len([each for each in nodes if each.startswith("counting:linger_")]) == 6
    assert len([each for each in nodes if each.startswith("counting:peek_")]) == 3
    for run in (each for each in nodes.values() if each["parent"] is None):
        calls = [each for each in nodes.values() if each["parent"] == run["id"]]
        one, other, nested = sorted(calls, key=lambda each: cast(int, each["sequence"]))
        assert [one["tool"], other["tool"], nested["tool"]] == ["counting:linger"] * 2 + [None]
        assert one["parallel"]
        assert other["parallel"]
        assert cast(float, other["started_at"]) < cast(float, one["ended_at"])
        (inside,) = [each for each in nodes.values() if each["parent"] == nested["id"]]
        assert inside["tool"] == "counting:peek"
        steps = {
            (each["source"], each["target"])
            for each in _data(view, "edges")
            if each["target"] == nested["id"]
        }
        assert steps == {(one["id"], nested["id"]), (other["id"], nested["id"])}

    definition = (await harness.http.get("/api/capabilities/drawn:outer/definition")).json()
    labels = [each["label"] for each in _data(definition, "nodes")]
    assert labels == ["drawn:outer", "counting:linger", "drawn:inner"]
    outer, _, inner = (str(each["id"]) for each in _data(definition, "nodes"))

    async def learned() -> bool:
        graph = (await harness.http.get("/api/graph/hypergraph?edge_limit=5000&limit=2000")).json()
        kinds = {
            (each["from"], each["to"], each["type"]): each["source"] for each in graph["edges"]
        }
        wanted = [
            (outer, "counting:linger", "contains"),
            (outer, inner, "contains"),
            (inner, "counting:peek", "contains"),
            ("counting:linger", inner, "sequence"),
        ]
        return all(kinds.get(each) == "observed" for each in wanted)

    await eventually(learned)


def _data(view: Json, kind: str) -> Sequence[Json]:
    elements = cast(dict[str, Sequence[dict[str, Json]]], view["elements"])
    return [each["data"] for each in elements[kind]]
