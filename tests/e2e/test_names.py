"""Names on the whole stack: reserved before a program runs, resolving once it has succeeded."""

import asyncio
from typing import Any

import httpx2
import pytest

from libs.pml_local.tests.support.harness import eventually
from tests.e2e.harness import StackHarness

pytestmark = pytest.mark.e2e

Answer = dict[str, Any]
STEP = "return await mcp.counting.step({ n: args.n });"


async def _posted(harness: StackHarness, path: str, body: Answer) -> Answer:
    """The first answer; with 503 nothing was accepted: a busy part did not respond in time."""

    async def answered() -> httpx2.Response | None:
        answer = await harness.http.post(path, json=body)
        return None if answer.status_code == 503 else answer

    answer = await eventually(answered)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def _asked(harness: StackHarness, code: str, **more: object) -> Answer:
    return await _posted(harness, "/api/execute", {"code": code, **more})


async def _code_of(harness: StackHarness, name: str) -> tuple[int, str]:
    found = await harness.http.get(f"/api/capabilities/{name}")
    return found.status_code, found.json().get("code", "")


async def test_of_fifty_programs_at_once_under_one_name_one_runs(harness: StackHarness) -> None:
    programs = [f"await mcp.counting.peek({{ path: 'race {n}' }}); return {n};" for n in range(50)]
    answers = await asyncio.gather(
        *(_asked(harness, code, name="race:win", timeout=60) for code in programs)
    )
    won = [answer for answer in answers if answer["status"] == "success"]
    lost = [answer for answer in answers if answer["status"] == "error"]
    assert (len(won), len(lost)) == (1, 49)
    await harness.has_name(won[0], "race:win")
    assert await _code_of(harness, "race:win") == (200, programs[won[0]["result"]])
    for answer in lost:
        message = answer["error"]["message"]
        assert "race:win is reserved for workflow" in message or "race:win (" in message, message
        assert answer.get("tasks", []) == []
        assert answer.get("capability_name") != "race:win"


async def test_ac01_ac06_a_name_resolves_once_its_caller_was_answered(
    harness: StackHarness,
) -> None:
    room = asyncio.Semaphore(4)

    async def named(n: int) -> None:
        name, code = f"fresh:at{n}", f"const seen = {n};\nawait mcp.counting.peek({{ path: 'f' }});"
        answer = await _asked(harness, f"{code}\nreturn seen;", name=name)
        await harness.has_name(answer, name)
        by_name = await _posted(harness, "/api/execute", {"capability": name})
        assert by_name.get("result") == n, by_name
        found = await _posted(harness, "/api/discover", {"intent": name, "limit": 100})
        assert name in [hit["name"] for hit in found["hits"]]
        nested = await _asked(harness, f"return await capabilities.fresh_at{n}({{}});")
        assert nested.get("result") == n, nested

    async def in_turn(n: int) -> None:
        async with room:
            await named(n)

    async with asyncio.TaskGroup() as tasks:
        for n in range(8):
            tasks.create_task(in_turn(n))


async def test_a_program_that_fails_or_is_denied_leaves_its_name_free(
    harness: StackHarness,
) -> None:
    broken = await _asked(harness, "return args.no.such;", name="twice:tried")
    assert broken["status"] == "error"
    assert broken.get("capability_name") != "twice:tried"
    assert (await _code_of(harness, "twice:tried"))[0] == 404
    asked = await _asked(harness, STEP, name="twice:tried", args={"n": 7301})
    assert asked["status"] == "approval_required"
    waits = await _asked(harness, "return 2;", name="twice:tried")
    assert f"is reserved for workflow {asked['workflow_id']}" in waits["error"]["message"]
    denied = await harness.http.post(
        f"/api/workflows/{asked['workflow_id']}/approval",
        json={"decision": "deny"},
        headers=harness.approver,
    )
    assert denied.status_code == 200, denied.text
    right = await _asked(harness, "return 2;", name="twice:tried")
    await harness.has_name(right, "twice:tried")
    assert await _code_of(harness, "twice:tried") == (200, "return 2;")


async def test_other_code_under_a_held_name_is_its_next_version(harness: StackHarness) -> None:
    first = await _asked(harness, "return 'first';", name="grow:up")
    await harness.has_name(first, "grow:up")
    refused = await _asked(harness, "return 'second';", name="grow:up")
    assert "send `update: true` to make this its version 2" in refused["error"]["message"]
    more = {"update": True, "version_tag": "v1.1.0", "change_summary": "Says second."}
    second = await _asked(harness, "return 'second';", name="grow:up", **more)
    await harness.has_name(second, "grow:up")
    record = (await harness.http.get("/api/capabilities/grow:up")).json()
    assert (record["version"], record["version_tag"]) == (2, "v1.1.0")
    by_name = await harness.http.post("/api/execute", json={"capability": "grow:up"})
    assert by_name.json()["result"] == "second"
    again = await _asked(harness, "return 'first';", name="grow:up")
    assert again["status"] == "success"
    assert (await harness.http.get("/api/capabilities/grow:up")).json()["version"] == 2
