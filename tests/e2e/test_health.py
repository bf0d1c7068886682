"""A capability whose new version fails: it sinks, its last good version is offered, it recovers."""

import asyncio
from typing import Any, Final

import pytest

from libs.pml_local.tests.support.harness import eventually
from tests.e2e.harness import StackHarness

pytestmark = pytest.mark.e2e

Answer = dict[str, Any]
INTENT: Final = "look whether the well of health has water"
NAME, RIVAL = "well:look", "well:other"
WELL = "const found = await mcp.counting.peek({ path: 'well' });\n"
FIRST = f"{WELL}return args.dry ? 'none' : found.exists;"
NEXT = f"{WELL}if (args.dry) throw new Error('no water');\nreturn [found.exists];"
OTHER = f"{WELL}return {{ seen: found.exists, dry: args.dry }};"
DRY, WET = {"dry": True}, {"dry": False}


async def _taught(harness: StackHarness, name: str, times: int, args: Answer) -> list[Answer]:
    body = {"capability": name, "args": args}
    runs = (harness.http.post("/api/execute", json=body) for _ in range(times))
    return [answer.json() for answer in await asyncio.gather(*runs)]


async def _named(harness: StackHarness, name: str, code: str, *, update: bool = False) -> None:
    body = {"code": code, "name": name, "intent": INTENT, "args": WET, "update": update}
    answer = (await harness.http.post("/api/execute", json=body)).json()
    await harness.has_name(answer, name)


async def _until(harness: StackHarness, health: str) -> Answer:
    """Wait for the health of the latest version."""

    async def found() -> Answer | None:
        record = (await harness.http.get(f"/api/capabilities/{NAME}")).json()
        return record if record["health"] == health else None

    return await eventually(found)


async def _found(harness: StackHarness) -> list[Answer]:
    asked = {"intent": INTENT, "type": "capability", "limit": 5}
    page = (await harness.http.post("/api/discover", json=asked)).json()
    return [hit for hit in page["hits"] if hit["name"] in (NAME, RIVAL)]


async def test_a_new_version_that_fails_sinks_and_recovers(harness: StackHarness) -> None:
    await _named(harness, NAME, FIRST)
    await _taught(harness, NAME, 4, WET)
    await _until(harness, "healthy")
    await _named(harness, RIVAL, OTHER)
    assert (await _found(harness))[0]["name"] == NAME

    await _named(harness, NAME, NEXT, update=True)
    failed = await _taught(harness, NAME, 14, DRY)
    assert {answer["status"] for answer in failed} == {"error"}
    record = await _until(harness, "failing")
    assert (record["version"], record["last_good"]) == (2, f"{NAME}@1")
    rival, sunk = await _found(harness)
    assert (rival["name"], sunk["name"]) == (RIVAL, NAME)
    assert (sunk["health"], sunk["last_good"]) == ("failing", f"{NAME}@1")

    (told,) = await _taught(harness, NAME, 1, WET)
    assert f"call {NAME}@1, which is healthy" in told["notices"][0]
    (good,) = await _taught(harness, record["last_good"], 1, DRY)
    assert (good["result"], "notices" in good) == ("none", False)

    await _taught(harness, NAME, 16, WET)
    record = await _until(harness, "healthy")
    assert (record["last_good"], record["notices"]) == (None, [])
