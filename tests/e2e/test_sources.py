"""DAGs and single tools as sources, and runs of code exported as DAGs that run again."""

from typing import Any, cast

import pytest

from libs.pml_local.tests.support.harness import eventually
from tests.e2e.harness import StackHarness

pytestmark = pytest.mark.e2e

Answer = dict[str, Any]
DAG: Answer = {
    "tasks": [
        {
            "id": "again",
            "tool": "counting:peek",
            "arguments": {"path": "$OUTPUT[root].path"},
            "depends_on": ["root", "nowhere"],
        },
        {"id": "root", "tool": "counting:peek", "arguments": {"path": "$INPUT[folder]"}},
        {"id": "nowhere", "tool": "counting:peek", "arguments": {"path": "/no where"}},
    ]
}


async def _asked(harness: StackHarness, **body: object) -> Answer:
    answer = await harness.http.post("/api/execute", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def _learned(harness: StackHarness, name: str) -> Answer:
    async def known() -> bool:
        return (await harness.http.get(f"/api/capabilities/{name}")).status_code == 200

    assert await eventually(known)
    return (await harness.http.get(f"/api/capabilities/{name}")).json()


async def _drawn(harness: StackHarness, workflow_id: str) -> Answer:
    answer = await harness.http.get(f"/api/workflows/{workflow_id}/dag")
    assert answer.status_code == 200, answer.text
    return answer.json()


def _shape(dag: Answer) -> list[tuple[str, object, list[str]]]:
    return [(task["tool"], task["arguments"], task["depends_on"]) for task in dag["tasks"]]


async def test_a_dag_is_analysed_run_and_learned_like_any_program(harness: StackHarness) -> None:
    ran = await _asked(harness, dag=DAG, args={"folder": "/"}, name="dags:look")
    assert ran["status"] == "success", ran
    assert ran["result"] == {
        "again": {"path": "/", "exists": True},
        "root": {"path": "/", "exists": True},
        "nowhere": {"path": "/no where", "exists": False},
    }
    workflow = cast(Answer, await harness.workflow(ran["workflow_id"]))
    kinds = [node["type"] for node in workflow["structure"]["nodes"]]
    assert kinds == ["fork", "task", "task", "join", "task"]
    learned = await _learned(harness, "dags:look")
    assert learned["source"] == {"type": "dag", "dag": DAG}
    known = await _asked(harness, capability="dags:look", args={"folder": "/nowhere"})
    assert known["result"]["again"] == {"path": "/nowhere", "exists": False}


async def test_a_run_of_code_is_exported_as_a_dag_and_runs_again(harness: StackHarness) -> None:
    code = """const first = await mcp.counting.peek({ path: args.folder });
const [second, third] = await Promise.all([
  mcp.counting.peek({ path: first.path }),
  mcp.counting.peek({ path: "$OUTPUT[is text]" }),
]);
return await mcp.counting.peek({ path: second.path });"""
    ran = await _asked(harness, code=code, args={"folder": "/"})
    view = await _drawn(harness, ran["workflow_id"])
    assert (view["args"], view["left_out"]) == ({"folder": "/"}, [])
    assert _shape(view["dag"]) == [
        ("counting:peek", {"path": "$INPUT[folder]"}, []),
        ("counting:peek", {"path": "$OUTPUT[n1.0].path"}, ["n1.0"]),
        ("counting:peek", {"path": "$$OUTPUT[is text]"}, ["n1.0"]),
        ("counting:peek", {"path": "$OUTPUT[n2.0].path"}, ["n2.0", "n3.0"]),
    ]
    again = await _asked(harness, dag=view["dag"], args=view["args"])
    assert again["result"]["n4.0"] == ran["result"]
    assert _shape((await _drawn(harness, again["workflow_id"]))["dag"]) == _shape(view["dag"])


async def test_a_bad_dag_is_refused_with_the_task_before_anything_runs(
    harness: StackHarness,
) -> None:
    circle = [
        {"id": "a", "tool": "counting:step", "depends_on": ["b"]},
        {"id": "b", "tool": "counting:step", "depends_on": ["a"]},
    ]
    answer = await harness.http.post("/api/execute", json={"dag": {"tasks": circle}})
    assert answer.status_code == 422, answer.text
    assert "a waits for b waits for a" in answer.text


async def test_ac02_a_tool_is_a_capability_with_defaults_that_arguments_override(
    harness: StackHarness,
) -> None:
    source = {"tool_id": "counting:peek", "default_args": {"path": "/"}}
    ran = await _asked(harness, tool=source, name="tools:peek")
    assert ran["result"] == {"path": "/", "exists": True}
    learned = await _learned(harness, "tools:peek")
    assert learned["source"] == {
        "type": "tool",
        "tool_id": "counting:peek",
        "default_args": {"path": "/"},
    }
    found = await harness.http.post("/api/discover", json={"intent": "peek", "type": "capability"})
    (hit,) = [hit for hit in found.json()["hits"] if hit["name"] == "tools:peek"]
    assert hit["source_type"] == "tool"
    assert hit["preview"].startswith('return await mcp.call("counting:peek"')
    other = await _asked(harness, capability="tools:peek", args={"path": "/no where"})
    assert other["result"] == {"path": "/no where", "exists": False}


async def test_a_workflow_that_never_ran_has_no_dag(harness: StackHarness) -> None:
    asked = await _asked(harness, code="return await mcp.counting.step({ n: 7100 });")
    answer = await harness.http.get(f"/api/workflows/{asked['workflow_id']}/dag")
    assert answer.status_code == 409
    unknown = await harness.http.get(f"/api/workflows/{'0' * 8}-0000-0000-0000-{'0' * 12}/dag")
    assert unknown.status_code == 404
