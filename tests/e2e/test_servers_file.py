"""Changes of the `mcpServers` file while the whole stack runs."""

import json
from typing import Any

import httpx2
import pytest

from libs.pml_local.tests.support.harness import eventually
from tests.e2e.harness import StackHarness

pytestmark = pytest.mark.e2e

PROGRAM = 'return await mcp.call("my-odd-one:text", {});'


async def _reload(harness: StackHarness) -> httpx2.Response:
    return await harness.http.post("/api/servers/reload", headers=harness.approver)


async def test_a_changed_file_is_applied_and_a_faulty_entry_stops_nothing(
    harness: StackHarness,
) -> None:
    file = harness.stack.home.parent / "servers.json"
    before = file.read_text(encoding="utf-8")
    entries = json.loads(before)["mcpServers"]
    more = {"My odd one": entries["odd"], "Broken": {"url": "no address"}}
    try:
        file.write_text("// changed\n" + json.dumps({"mcpServers": {**entries, **more}}))
        found = (await _reload(harness)).json()
        assert (found["added"], found["removed"], found["changed"]) == (["my-odd-one"], [], [])
        assert set(found["unchanged"]) == set(entries)

        async def ready() -> Any:
            listed = (await harness.http.get("/api/servers")).json()["servers"]
            (one,) = (each for each in listed if each["name"] == "my-odd-one")
            return one["announced"] and one

        assert (await eventually(ready))["title"] == "My odd one"
        assert (await harness.execute(PROGRAM))["result"] == "fine"
        health = await harness.http.get("/healthz")
        assert health.status_code == 200
        assert "mcpServers.Broken.url" in health.json()["mcp_servers"]["broken"]

        file.write_text("{")
        assert (await _reload(harness)).status_code == 409
        assert (await harness.execute(PROGRAM))["result"] == "fine"
    finally:
        file.write_text(before, encoding="utf-8")
    assert (await _reload(harness)).json()["removed"] == ["my-odd-one"]

    async def withdrawn() -> bool:
        return "There is no server" in str((await harness.execute(PROGRAM)).get("error"))

    await eventually(withdrawn)
