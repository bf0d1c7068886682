"""The way of an agent from a question to the answer, with the official MCP client alone."""

import asyncio
import json
from typing import cast
from uuid import uuid4

import pytest
from mcp import Client
from mcp.client.session import IncomingMessage
from mcp_types import Tool, ToolListChangedNotification

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from tests.e2e.agents import Mode, agent, answer_of, step, text_of
from tests.e2e.deciding import decide
from tests.e2e.harness import Json, StackHarness

pytestmark = pytest.mark.e2e


async def test_a_pending_approval_says_what_to_call_and_how_a_person_decides(
    harness: StackHarness, mode: Mode
) -> None:
    async with agent(harness, mode) as client:
        by_program = await client.call_tool("pml_execute", {"code": step(900)})
        by_name = await client.call_tool("counting_step", {"n": 900})
    for result in (by_program, by_name):
        asked = answer_of(result)
        way_on = cast(Json, asked["next"])
        workflow = asked["workflowId"]
        assert asked["status"] == "approval_required"
        assert way_on["call"] == {
            "tool": "pml_get_task_result",
            "arguments": {"workflow_id": workflow, "wait_s": 30},
        }
        assert cast(Json, way_on["person"])["approve"] == f"pml approvals approve {workflow}"
        assert f"pml approvals approve {workflow}" in text_of(result)
        assert "Call pml_get_task_result" in text_of(result)
        assert len(text_of(result)) <= 1200
        assert json.dumps(asked).count("Count one step") == 1


async def test_a_pending_approval_of_a_changed_program_has_the_text_that_runs(
    harness: StackHarness, mode: Mode
) -> None:
    n = 902 if mode == "auto" else 903
    sent = f"Here it is:\n```ts\nasync () => await mcp.counting.step({{ n: {n} }})\n```"
    runs = f"return await (async () => await mcp.counting.step({{ n: {n} }}))()"
    async with agent(harness, mode) as client:
        result = await client.call_tool("pml_execute", {"code": sent})
    asked = answer_of(result)
    shown = str(cast(Json, asked["approval"])["code"])
    notices = cast(list[str], asked["notices"])
    assert len(text_of(result)) <= 1200
    assert shown == runs
    assert [each.split(":")[0][:40] for each in notices] == [
        "The Markdown fence round the program was",
        "The program was a function that nobody c",
    ]
    path = f"/api/workflows/{asked['workflowId']}/approval"
    whole = (await harness.http.get(path)).json()
    assert (whole["code"], len(whole["notices"])) == (runs, 2)


async def test_an_agent_gets_the_result_of_what_a_person_approved(
    harness: StackHarness, mode: Mode
) -> None:
    n = 910 if mode == "auto" else 911
    async with (
        asyncio.timeout(2 * PATIENCE_S),
        agent(harness, mode) as client,
        asyncio.TaskGroup() as group,
    ):
        asked = answer_of(await client.call_tool("pml_execute", {"code": step(n)}))
        way_on = cast(Json, cast(Json, asked["next"])["call"])
        arguments = cast(Json, way_on["arguments"])
        waiting = group.create_task(client.call_tool(str(way_on["tool"]), arguments))
        await harness.approve(str(asked["workflowId"]))
        answer = answer_of(await waiting)
        assert (answer["status"], answer["result"]) == ("success", {"result": f"step {n} done"})
        (task,) = cast(list[Json], answer["tasks"])
        of_task = {**arguments, "task_id": task["id"]}
        whole = answer_of(await client.call_tool("pml_get_task_result", of_task))
        assert whole["result"] == {"result": f"step {n} done"}
        page = {**arguments, "limit": 3, "offset": 2, "format": "text"}
        paged = answer_of(await client.call_tool("pml_get_task_result", page))
        assert paged["page"] == {
            "text": '  "',
            "offset": 2,
            "total": len(json.dumps(answer["result"], indent=2)),
            "next_offset": 5,
        }
    assert harness.steps()[n] == 1


async def test_an_answer_counts_a_hundred_calls_and_tells_none_of_them(
    harness: StackHarness, mode: Mode
) -> None:
    code = "let n = 0; while (n < 100) await mcp.counting.peek({ path: `/${n++}` }); return n;"
    async with asyncio.timeout(PATIENCE_S), agent(harness, mode) as client:
        given = await client.call_tool("pml_execute", {"code": code})
        answer = answer_of(given)
        asked = {"workflow_id": answer["workflowId"]}
        whole = answer_of(await client.call_tool("pml_get_task_result", asked))
        every = answer_of(await client.call_tool("pml_execute", {"code": code, "detail": "tasks"}))
    calls = cast(Json, answer["calls"])
    assert (answer["result"], answer["tasks"]) == (100, [])
    assert (calls["made"], calls["failed"]) == (100, 0)
    assert calls["by_tool"] == {"counting:peek": 100}
    assert len(text_of(given)) < 1000
    assert [len(cast(list[Json], one["tasks"])) for one in (whole, every)] == [100, 100]


async def test_unknown_results_and_those_that_are_not_there_yet_are_different_errors(
    harness: StackHarness,
) -> None:
    async with agent(harness) as client:
        asked = answer_of(await client.call_tool("pml_execute", {"code": step(920)}))
        workflow = asked["workflowId"]
        expected = {"not_yet": {"workflow_id": workflow, "task_id": "n1.0"}}
        expected["unknown"] = {"workflow_id": str(uuid4())}
        for kind, arguments in expected.items():
            result = await client.call_tool("pml_get_task_result", arguments)
            assert result.is_error
            assert cast(Json, answer_of(result)["error"])["kind"] == kind
        stopped = await client.call_tool("pml_cancel", {"workflow_id": workflow})
        assert not stopped.is_error
        assert cast(Json, answer_of(stopped)["error"])["kind"] == "cancelled"
        late = await client.call_tool("pml_cancel", {"workflow_id": workflow})
        assert late.is_error
        assert "nothing to cancel" in text_of(late)


async def test_an_agent_stops_a_run(harness: StackHarness) -> None:
    harness.hold(930)
    async with asyncio.timeout(2 * PATIENCE_S), agent(harness) as client:
        asked = answer_of(await client.call_tool("pml_execute", {"code": step(930)}))
        await harness.approve(str(asked["workflowId"]))
        await eventually(lambda: harness.steps()[930] == 1)
        arguments = {"workflow_id": asked["workflowId"], "reason": "enough"}
        stopped = answer_of(await client.call_tool("pml_cancel", arguments))
    assert "cancelled it: enough" in str(cast(Json, stopped["error"])["message"])
    await eventually(lambda: (harness.folder / "cancelled-930").exists())


async def test_the_same_call_three_times_is_one_approval_and_one_write(
    harness: StackHarness, mode: Mode
) -> None:
    n = 940 if mode == "auto" else 942
    calls = {
        n: ("pml_execute", {"code": step(n)}),
        n + 1: ("counting_step", {"n": n + 1}),
    }
    async with asyncio.timeout(2 * PATIENCE_S), agent(harness, mode) as client:
        for number, (tool, arguments) in calls.items():
            first = answer_of(await client.call_tool(tool, arguments))
            again = answer_of(await client.call_tool(tool, arguments))
            assert again["workflowId"] == first["workflowId"]
            assert again["joined"] is True
            await harness.approve(str(first["workflowId"]))
            third = await client.call_tool(tool, arguments)
            assert not third.is_error, third
            assert f"step {number} done" in text_of(third)
            assert harness.steps()[number] == 1
            another = answer_of(await client.call_tool(tool, arguments))
            assert another["status"] == "approval_required"
            assert another["workflowId"] != first["workflowId"]
        fresh = answer_of(await client.call_tool("pml_execute", {"code": step(n), "fresh": True}))
        assert "joined" not in fresh


async def test_a_call_joins_a_run_that_parked(harness: StackHarness) -> None:
    code = "return await mcp.call(args.tool, { n: 946 });"
    call = {"code": code, "args": {"tool": "counting:step"}}
    async with asyncio.timeout(2 * PATIENCE_S), agent(harness) as client:
        first = answer_of(await client.call_tool("pml_execute", call))
        workflow = str(first["workflowId"])
        await harness.approve(workflow)
        joined = answer_of(await client.call_tool("pml_execute", call))
        assert (joined["status"], joined["workflowId"]) == ("approval_required", workflow)
        parked = cast(Json, joined["approval"])
        person = cast(Json, cast(Json, joined["next"])["person"])
        assert person["approve"] == f"pml approvals approve {workflow} --approval {parked['id']}"
        decided = await decide(harness, workflow, decision="approve", approval_id=parked["id"])
        assert decided.status_code == 200, decided.text
        done = answer_of(await client.call_tool("pml_execute", call))
    assert (done["status"], done["workflowId"]) == ("success", workflow)
    assert harness.steps()[946] == 1


async def test_ac07_ac08_a_named_capability_becomes_a_tool_that_is_heard_of_called_and_found(
    harness: StackHarness,
) -> None:
    code = (
        "const seen = await mcp.counting.peek({ path: args.path });\nreturn { seen, way: 'tool' };"
    )
    told: list[IncomingMessage] = []

    async def hear(message: IncomingMessage) -> None:
        told.append(message)

    async with (
        agent(harness) as client,
        client.listen(tools_list_changed=True) as changes,
        agent(harness, "legacy", hear) as older,
    ):
        done = await client.call_tool(
            "pml_execute", {"code": code, "args": {"path": "way"}, "name": "way:peek_once"}
        )
        assert answer_of(done)["status"] == "success", done
        async with asyncio.timeout(PATIENCE_S):
            while "cap_way_peek_once" not in (tools := await _tools(client)):
                await anext(changes)
        await eventually(lambda: any(isinstance(m, ToolListChangedNotification) for m in told))
        assert "cap_way_peek_once" in await _tools(older)
        tool = tools["cap_way_peek_once"]
        assert tool.title == "way:peek_once"
        assert tool.input_schema["properties"].keys() == {"path"}
        called = await client.call_tool("cap_way_peek_once", {"path": "way"})
        assert answer_of(called)["way"] == "tool"
        found = await client.call_tool("pml_discover", {"intent": "way peek once"})
        assert '"way:peek_once"' in text_of(found)


async def _tools(client: Client) -> dict[str, Tool]:
    """Return every tool that is listed, by name, of all pages."""
    page = await client.list_tools()
    tools = list(page.tools)
    while page.next_cursor is not None:
        page = await client.list_tools(cursor=page.next_cursor)
        tools += page.tools
    return {tool.name: tool for tool in tools}
