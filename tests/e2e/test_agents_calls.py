"""Long calls of an agent: their progress, and cancelling them, with the official client."""

import asyncio
import json
from itertools import pairwise
from typing import cast

import pytest
from mcp import Client

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from tests.e2e.agents import Mode, agent, answer_of, text_of
from tests.e2e.harness import Json, StackHarness

pytestmark = pytest.mark.e2e

ALL = """
const path = args.path;
await mcp.counting.peek({ path });
const said = await mcp.counting.linger({ n: args.n });
if (said === "never") await mcp.counting.fail({ why: said });
return said;
"""


def _call(n: int, **more: object) -> dict[str, object]:
    return {"code": ALL, "args": {"path": "/", "n": n}, "timeout": 60, **more}


async def _lingers(harness: StackHarness, n: int) -> None:
    await eventually((harness.folder / f"lingers-{n}").exists)


async def _cancel(calling: asyncio.Task[object]) -> None:
    calling.cancel()
    await asyncio.gather(calling, return_exceptions=True)


async def _latest(harness: StackHarness) -> Json:
    """The workflow that was accepted last."""
    page = (await harness.http.get("/api/workflows", params={"limit": 1})).json()
    return cast(list[Json], page["workflows"])[0]


async def test_a_client_hears_which_calls_its_program_has_reached(
    harness: StackHarness, mode: Mode
) -> None:
    n = 1000 if mode == "auto" else 1001
    told: list[tuple[float, float | None, str | None]] = []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async with (
        asyncio.timeout(2 * PATIENCE_S),
        agent(harness, mode) as client,
        asyncio.TaskGroup() as group,
    ):
        calling = group.create_task(
            client.call_tool("pml_execute", _call(n), progress_callback=tell)
        )
        await _lingers(harness, n)
        await eventually(lambda: any("linger" in str(one[2]) for one in told))
        harness.release(n)
        answer = answer_of(await calling)
    assert answer["status"] == "success", answer
    assert all(before[0] < after[0] for before, after in pairwise(told))
    assert told[-1][1] == 3
    assert "2 of 3 calls reached: counting:linger" in [str(one[2])[:38] for one in told][-1]


async def test_a_client_that_cancels_stops_its_program(harness: StackHarness, mode: Mode) -> None:
    n = 1010 if mode == "auto" else 1011
    async with asyncio.timeout(2 * PATIENCE_S), agent(harness, mode) as client:
        calling = asyncio.create_task(client.call_tool("pml_execute", _call(n)))
        await _lingers(harness, n)
        workflow = await _latest(harness)
        await _cancel(calling)
        ended = await harness.end_of(str(workflow["workflow_id"]))
        error = cast(Json, ended["error"])
        assert error["kind"] == "cancelled"
        assert "the call was cancelled. It has called counting:peek." in str(error["message"])
        await eventually((harness.folder / f"cancelled-{n}").exists)
        assert (await client.call_tool("counting_peek", {"path": "/"})).is_error is False


async def test_a_client_that_cancels_stops_a_direct_call(harness: StackHarness, mode: Mode) -> None:
    n = 1020 if mode == "auto" else 1021
    async with asyncio.timeout(2 * PATIENCE_S), agent(harness, mode) as client:
        calling = asyncio.create_task(client.call_tool("counting_linger", {"n": n}))
        await _lingers(harness, n)
        await _cancel(calling)
        await eventually((harness.folder / f"cancelled-{n}").exists)


async def test_a_program_goes_on_while_another_client_waits_for_it(
    harness: StackHarness, mode: Mode
) -> None:
    n = 1030 if mode == "auto" else 1031
    call = _call(n, idempotency_key=f"shared-{n}")
    heard = asyncio.Event()

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        if total is not None:
            heard.set()

    async def waits(client: Client) -> Json:
        return answer_of(await client.call_tool("pml_execute", call, progress_callback=tell))

    async with (
        asyncio.timeout(2 * PATIENCE_S),
        agent(harness, mode) as one,
        agent(harness, mode) as other,
    ):
        calling = asyncio.create_task(one.call_tool("pml_execute", call))
        await _lingers(harness, n)
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(waits(other))
            await heard.wait()
            await _cancel(calling)
            harness.release(n)
        assert waiting.result()["status"] == "success"
    assert not (harness.folder / f"cancelled-{n}").exists()


SAYS = """
console.log("looking at", args.path);
const { exists } = await mcp.counting.peek({ path: args.path });
console.warn("exists:", exists);
if (args.fails) throw new Error("as told");
return exists;
"""


async def test_what_a_program_writes_to_its_console_is_in_its_answers_and_events(
    harness: StackHarness, mode: Mode
) -> None:
    expected = [
        {"level": "info", "message": "looking at /"},
        {"level": "warn", "message": "exists: true"},
    ]
    call: Json = {"code": SAYS, "args": {"path": "/", "fails": False}}
    failing: Json = {"code": SAYS, "args": {"path": "/", "fails": True}}
    workflow = ""
    async with asyncio.timeout(2 * PATIENCE_S), agent(harness, mode) as client:
        for arguments, status in ((call, "success"), (failing, "error")):
            result = await client.call_tool("pml_execute", arguments)
            answer = answer_of(result)
            assert (answer["status"], answer["logs"]) == (status, expected)
            workflow = str(answer["workflowId"])
            again = answer_of(
                await client.call_tool("pml_get_task_result", {"workflow_id": workflow})
            )
            assert again["logs"] == expected
            assert (await harness.workflow(workflow))["logs"] == expected
            if status == "error":
                assert "warn: exists: true" in text_of(result)
    events = await harness.http.get(f"/api/workflows/{workflow}/events")
    data = [json.loads(line[5:]) for line in events.text.splitlines() if line.startswith("data:")]
    entries = [entry for event in data for entry in event.get("entries", ())]
    told = [entry["message"] for entry in entries if entry["type"] == "log"]
    assert told == [line["message"] for line in expected]
    assert any(event.get("logs") == expected for event in data)


async def test_a_parked_program_has_said_what_it_wrote(harness: StackHarness) -> None:
    call = {
        "code": "console.log('before'); return await mcp.call(args.tool, { n: 1040 });",
        "args": {"tool": "counting:step"},
    }
    async with asyncio.timeout(2 * PATIENCE_S), agent(harness) as client:
        asked = answer_of(await client.call_tool("pml_execute", call))
        await harness.approve(str(asked["workflowId"]))
        parked = answer_of(await client.call_tool("pml_execute", call))
    assert parked["status"] == "approval_required"
    assert parked["logs"] == [{"level": "info", "message": "before"}]
