"""The check of an `mcpServers` file, connected to real servers."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from pml_gateway.entrypoints.commands.check import check
from services.gateway.tests.integration.mcp.harness import ServerHarness

pytestmark = pytest.mark.integration


async def test_a_connected_check_lists_tools_and_tells_what_cannot_be_started(
    harness: ServerHarness, tmp_path: Path
) -> None:
    server = harness.stdio()
    good = {"command": server.command, "args": server.args, "excludeTools": ["huge"]}
    servers = {"Good": good, "gone": {"command": "/nowhere"}, "bad": {}, "off": {"disabled": True}}
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    report = cast(Any, await check(file, {}, connect=True))
    good_one, gone, bad, off = report["entries"]
    assert (good_one["name"], good_one["state"], good_one["excluded"]) == ("good", "ready", 1)
    assert "echo" in good_one["names"]
    assert (gone["state"], "cannot start" in gone["error"]) == ("failed", True)
    assert (bad["faults"] != [], "state" in bad, off["disabled"]) == (True, False, True)

    file.write_text("{")
    assert "not JSON" in str((await check(file, {}, connect=True))["fault"])
