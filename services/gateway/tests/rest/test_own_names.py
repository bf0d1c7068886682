"""Servers whose tools are listed under their own names: over MCP, under the policy, and in the list
of servers."""

from dataclasses import replace

import pytest

from pml_common.contracts.decision import Policy, PolicyRule
from pml_common.contracts.tool import ToolDefinition
from pml_gateway.ports import Caller
from services.gateway.tests.support.builders import READ, SCOPE, WRITE
from services.gateway.tests.support.harness import READY, World, Worlds

pytestmark = pytest.mark.integration

BARE = replace(READY, prefixed=False)
CALLER = Caller(SCOPE, "mira")
OTHER = ToolDefinition(server="web", name="read", annotations=READ.annotations)


def _connect(w: World, **servers: tuple[ToolDefinition, ...]) -> None:
    """Have these servers connected, all without prefixes."""
    w.servers.listed = servers
    w.servers.stands = {name: replace(BARE, tools=len(tools)) for name, tools in servers.items()}


async def _names(w: World) -> list[str]:
    listed = await w.tools.list_tools(CALLER, "all")
    return [tool.name for tool in listed.tools if not tool.name.startswith("pml_")]


async def test_a_tool_is_listed_and_called_by_its_own_name_or_its_id(world: Worlds) -> None:
    async with world() as w:
        _connect(w, fs=(READ, WRITE))
        assert await _names(w) == ["read", "write"]
        for name in ("read", "fs:read"):
            assert not (await w.tools.call(CALLER, name, {"path": "/a"})).is_error
        assert w.servers.made == ["fs:read", "fs:read"]


async def test_names_that_two_servers_have_are_those_with_the_servers(world: Worlds) -> None:
    async with world() as w:
        _connect(w, fs=(READ, WRITE), web=(OTHER,))
        assert await _names(w) == ["fs_read", "write", "web_read"]
        servers = (await w.http.get("/api/servers")).json()["servers"]
        assert [(one["prefixed"], one["warnings"]) for one in servers] == [
            (
                False,
                ["fs:read is listed as fs_read: its own name is another tool's, PML's or too long"],
            ),
            (
                False,
                [
                    "web:read is listed as web_read: its own name is another tool's, PML's or too "
                    "long"
                ],
            ),
        ]
        _connect(w, web=(OTHER,))
        assert await _names(w) == ["read"]
        assert not (await w.tools.call(CALLER, "read", {"path": "/a"})).is_error
        assert w.servers.made == ["web:read"]


async def test_the_policy_decides_by_the_server_and_an_approval_names_it(world: Worlds) -> None:
    policy = Policy(rules=(PolicyRule(pattern="fs:read", verdict="deny"),))
    async with world(gateway_policy=policy) as w:
        _connect(w, fs=(READ, WRITE))
        assert await _names(w) == ["write"]
        w.peers.tools = (WRITE,)
        parked = await w.tools.call(CALLER, "write", {"path": "/a"})
        assert "a person must approve it first" in parked.model_dump_json()
        assert "fs:write" in parked.model_dump_json()
        assert w.servers.made == []


async def test_a_tool_in_quarantine_is_explained_by_its_own_name(world: Worlds) -> None:
    async with world() as w:
        await w.servers.review(w.parts.acceptance.quarantine, "fs")
        w.servers.declares = (READ.model_copy(update={"description": "Other."}), WRITE)
        await w.servers.review(w.parts.acceptance.quarantine, "fs")
        w.servers.stands = {"fs": BARE}
        result = await w.tools.call(CALLER, "read", {"path": "/a"})
        assert "`pml servers accept fs read`" in result.model_dump_json()


@pytest.mark.parametrize("state", ["connecting", "failed"])
async def test_an_unknown_name_may_be_of_a_server_that_is_away(state: str, world: Worlds) -> None:
    async with world() as w:
        w.servers.listed = {"fs": ()}
        away = replace(BARE, tools=0, error="it is away")
        w.servers.stands = {"fs": replace(away, state="connecting")}
        if state == "failed":
            w.servers.stands = {"fs": replace(away, state="failed")}
        result = await w.tools.call(CALLER, "read", {"path": "/a"})
        assert "MCP server fs is configured" in result.model_dump_json()
