"""Reload of the configured servers over REST: for approvers, and what it says."""

import pytest

from pml_gateway.ports import Reloaded
from services.gateway.tests.support.harness import APPROVER, Worlds

pytestmark = pytest.mark.integration


async def test_an_approver_reloads_the_servers_and_nobody_else(world: Worlds) -> None:
    async with world() as w:
        w.servers.reloaded = Reloaded(added=("git",), faulty={"web": ("mcpServers.web: no url",)})
        path = "/api/servers/reload"
        assert (await w.http.post(path)).status_code == 401
        answer = await w.http.post(path, headers=APPROVER)
        assert (answer.status_code, answer.json()) == (
            200,
            {
                "added": ["git"],
                "removed": [],
                "changed": [],
                "unchanged": [],
                "faulty": [{"name": "web", "faults": ["mcpServers.web: no url"]}],
            },
        )


async def test_a_file_with_a_fault_is_a_conflict_and_is_reported(world: Worlds) -> None:
    async with world() as w:
        health = (await w.http.get("/healthz")).json()
        assert health["mcp_servers_file"] == "ok"
        w.servers.broken = "mcp.json: not JSON"
        answer = await w.http.post("/api/servers/reload", headers=APPROVER)
        assert answer.status_code == 409
        assert answer.json()["error"]["message"] == "mcp.json: not JSON"
        health = await w.http.get("/healthz")
        assert (health.status_code, health.json()["mcp_servers_file"]) == (
            200,
            "mcp.json: not JSON",
        )
        assert (await w.http.get("/api/servers")).json()["file_fault"] == "mcp.json: not JSON"
