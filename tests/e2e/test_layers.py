"""DAGs that wait for approval between their layers, on the whole stack."""

import json
from typing import cast

import pytest
from mcp.client.client import Client

from tests.e2e.deciding import decide, restart_everything, waiting
from tests.e2e.harness import Json, StackHarness

pytestmark = pytest.mark.e2e


def _dag(first: int) -> Json:
    """A DAG that reads; makes two steps in parallel; makes a third; then reads the first result
    again, twice in sequence."""
    path = "$OUTPUT[look].path"
    return {
        "tasks": [
            {"id": "look", "tool": "counting:peek", "arguments": {"path": "$INPUT[folder]"}},
            {
                "id": "a",
                "tool": "counting:step",
                "arguments": {"n": first},
                "depends_on": ["look"],
            },
            {
                "id": "b",
                "tool": "counting:step",
                "arguments": {"n": first + 1},
                "depends_on": ["look"],
            },
            {
                "id": "c",
                "tool": "counting:step",
                "arguments": {"n": "$INPUT[third]"},
                "depends_on": ["a", "b"],
            },
            {
                "id": "again",
                "tool": "counting:peek",
                "arguments": {"path": path},
                "depends_on": ["look", "c"],
            },
            {
                "id": "last",
                "tool": "counting:peek",
                "arguments": {"path": path},
                "depends_on": ["look", "again"],
            },
        ]
    }


def _request(harness: StackHarness, first: int, **more: object) -> Json:
    return {
        "dag": _dag(first),
        "args": {"folder": str(harness.folder), "third": first + 2},
        "per_layer_validation": True,
        "timeout": 15,
        **more,
    }


async def _before_the_second_layer(harness: StackHarness, first: int) -> Json:
    """A workflow that was approved and waits after its first layer."""
    answer = await harness.http.post("/api/execute", json=_request(harness, first))
    asked = answer.json()
    assert asked["status"] == "approval_required", asked
    assert asked["approval"]["layer"] is None
    workflow = str(asked["workflow_id"])
    assert (await decide(harness, workflow, decision="approve")).status_code == 200
    return await waiting(harness, workflow, asked["approval"]["id"])


def _layer(found: Json) -> tuple[str, Json]:
    approval = cast(Json, found["approval"])
    return str(approval["approval_id"]), cast(Json, approval["layer"])


def _shown(tasks: object, *keys: str) -> list[tuple[object, ...]]:
    return [tuple(task[key] for key in keys) for task in cast(list[Json], tasks)]


async def _events(harness: StackHarness, workflow: str) -> list[tuple[str, Json]]:
    """The names and data of all events of an ended workflow."""
    answer = await harness.http.get(f"/api/workflows/{workflow}/events")
    blocks = [
        dict(line.split(": ", 1) for line in block.splitlines())
        for block in answer.text.strip().split("\n\n")
    ]
    return [(block["event"], json.loads(block["data"])) for block in blocks]


@pytest.mark.parametrize("restarts", [False, pytest.param(True, marks=pytest.mark.nightly)])
async def test_a_dag_waits_between_layers_through_restarts_and_repeats_nothing(
    harness: StackHarness, restarts: bool
) -> None:
    n = 780 if restarts else 730
    found = await _before_the_second_layer(harness, n)
    workflow = str(found["workflow_id"])
    first, layer = _layer(found)
    assert (layer["number"], layer["of"]) == (2, 5)
    ((task, tool, preview),) = _shown(layer["done"], "task", "tool", "preview")
    assert (task, tool) == ("look", "counting:peek")
    assert json.loads(str(preview)) == {"path": str(harness.folder), "exists": True}
    given = {"n": {"type": "literal", "value": n}}
    assert _shown(layer["next"], "task", "elevated", "arguments") == [
        ("a", True, given),
        ("b", True, {"n": {"type": "literal", "value": n + 1}}),
    ]
    if restarts:
        await restart_everything(harness)
    assert harness.steps()[n] == harness.steps()[n + 1] == 0

    listed = (await harness.http.get("/api/approvals")).json()["approvals"]
    assert [one["layer"] for one in listed if one["workflow_id"] == workflow] == [layer]
    unnamed = await decide(harness, workflow, decision="continue")
    assert unnamed.status_code == 409, unnamed.text
    went_on = await decide(harness, workflow, decision="continue", approval_id=first)
    assert went_on.status_code == 200, went_on.text
    second, layer = _layer(await waiting(harness, workflow, first))
    assert layer["number"] == 3
    assert _shown(layer["done"], "task", "preview") == [
        ("a", f'{{"result": "step {n} done"}}'),
        ("b", f'{{"result": "step {n + 1} done"}}'),
    ]
    assert _shown(layer["next"], "arguments") == [({"n": {"type": "literal", "value": n + 2}},)]
    stale = await decide(harness, workflow, decision="continue", approval_id=first)
    assert stale.status_code == 409, stale.text
    assert [harness.steps()[each] for each in (n, n + 1, n + 2)] == [1, 1, 0]

    if restarts:
        await restart_everything(harness)
    await decide(harness, workflow, decision="continue", approval_id=second)
    third, layer = _layer(await waiting(harness, workflow, second))
    assert (layer["number"], _shown(layer["next"], "elevated")) == (4, [(False,)])
    known = {"path": {"type": "literal", "value": str(harness.folder)}}
    assert _shown(layer["next"], "arguments") == [(known,)]
    await decide(harness, workflow, decision="continue", approval_id=third)
    ended = await harness.end_of(workflow)
    assert ended["status"] == "success", ended
    assert cast(Json, ended["result"])["c"] == {"result": f"step {n + 2} done"}
    assert [harness.steps()[each] for each in (n, n + 1, n + 2)] == [1, 1, 1]
    twice = await decide(harness, workflow, decision="continue", approval_id=third)
    assert twice.status_code == 409, twice.text

    told = await _events(harness, workflow)
    parked = [cast(Json, data["wanted"]) for name, data in told if name.endswith("workflow-parked")]
    assert [one["layer"] for one in parked] == [2, 3, 4]
    assert [name for name, _ in told].count("gateway.approval-requested") == 4


async def test_another_workflows_approval_is_refused(harness: StackHarness) -> None:
    ours, theirs = [await _before_the_second_layer(harness, first) for first in (740, 750)]
    (our_approval, _), (their_approval, _) = _layer(ours), _layer(theirs)
    workflow = str(ours["workflow_id"])
    foreign = await decide(harness, workflow, decision="continue", approval_id=their_approval)
    assert foreign.status_code == 409, foreign.text
    for found, approval in ((ours, our_approval), (theirs, their_approval)):
        body = {"decision": "abort", "approval_id": approval, "reason": "enough"}
        answer = (await decide(harness, str(found["workflow_id"]), **body)).json()
        assert answer["error"]["kind"] == "denied"
        assert "denied layer 2 of 5: enough" in answer["error"]["message"]
        assert answer["calls"]["by_tool"] == {"counting:peek": 1}
    assert harness.steps()[740] == harness.steps()[750] == 0


async def test_another_plan_continues_with_the_first_ones_results(harness: StackHarness) -> None:
    found = await _before_the_second_layer(harness, 760)
    approval, layer = _layer(found)
    body = {"decision": "replan", "approval_id": approval, "reason": "one step is enough"}
    answer = (await decide(harness, str(found["workflow_id"]), **body)).json()
    assert "wants another plan instead of layer 2 of 5" in answer["error"]["message"]
    ((preview,),) = _shown(layer["done"], "preview")
    step = {"id": "a", "tool": "counting:step", "arguments": {"n": 761}}
    task = {"id": "check", "tool": "counting:peek", "arguments": {"path": "$INPUT[seen]"}}
    plan = {"tasks": [step, {**task, "depends_on": ["a"]}]}
    asked = await harness.http.post(
        "/api/execute",
        json=_request(harness, 0, dag=plan, args={"seen": json.loads(str(preview))["path"]}),
    )
    workflow = asked.json()["workflow_id"]
    await decide(harness, workflow, decision="approve")
    approval, layer = _layer(await waiting(harness, workflow, asked.json()["approval"]["id"]))
    assert (layer["number"], layer["of"]) == (2, 2)
    ended = await decide(harness, workflow, decision="continue", approval_id=approval, wait=True)
    assert ended.json()["status"] == "success", ended.text
    assert [harness.steps()[n] for n in (760, 761)] == [0, 1]


async def test_read_only_layers_need_no_approval(harness: StackHarness) -> None:
    tasks = cast(list[Json], _dag(0)["tasks"])
    reading = [tasks[0], {**tasks[-1], "depends_on": ["look"]}]
    body = _request(harness, 0, dag={"tasks": reading})
    answer = await harness.http.post("/api/execute", json=body)
    assert answer.json()["status"] == "success", answer.text


async def test_layers_of_code_are_refused(harness: StackHarness) -> None:
    body = {"code": "return 1;", "per_layer_validation": True}
    answer = await harness.http.post("/api/execute", json=body)
    assert answer.status_code == 422, answer.text
    assert "per_layer_validation is for a dag" in answer.text


async def test_an_agent_asks_for_it_over_mcp(harness: StackHarness) -> None:
    async with Client(f"{harness.stack.url}/mcp") as client:
        dry = _request(harness, 770, dry_run=True)
        ran = await client.call_tool("pml_execute", dry)
        assert ran.structured_content is not None
        assert ran.structured_content["status"] == "success", ran.structured_content
        asked = await client.call_tool("pml_execute", _request(harness, 770))
        assert asked.structured_content is not None
        workflow = str(asked.structured_content["workflowId"])
        approval = asked.structured_content["approval"]["id"]
        await decide(harness, workflow, decision="approve")
        number = _layer(await waiting(harness, workflow, approval))[1]["number"]
    assert number == 2
    assert harness.steps()[770] == 0
