"""Programs that name MCP servers whose tools are not listed yet."""

import asyncio
from dataclasses import replace

import pytest

from pml_common.contracts.error import WorkflowError
from pml_gateway.application.server_listings import absent_servers, wait_until_announced
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.servers.named_servers import named_in, with_absent
from services.gateway.tests.support.builders import rejected, workflow
from services.gateway.tests.support.harness import READY, FakeServers

COMING = replace(READY, state="connecting", tools=0, announced=False)
LISTED = replace(READY, announced=False)
FAILED = replace(READY, state="failed", tools=0, error="cannot start it", announced=False)


@pytest.mark.parametrize(
    ("program", "names"),
    [
        ("mcp.fs.read({})", ["fs"]),
        ("mcp['my-fs'].read({})", ["my-fs"]),
        ('mcp.call("fs:read", {})', ["fs"]),
        ("const offset = fs_2 + nfs;", []),
        ("mcp['fs-2'].read({})", []),
    ],
)
def test_a_server_is_named_by_its_whole_name(program: str, names: list[str]) -> None:
    assert named_in(program, ["fs", "my-fs"]) == names


def test_only_programs_that_were_understood_are_told_of_absent_servers() -> None:
    error, fact = (
        WorkflowError(kind="rejected", message="There is no server."),
        rejected(workflow()),
    )
    assert with_absent(error, fact, []) == error
    syntax = fact.model_copy(update={"kind": "syntax"})
    assert with_absent(error, syntax, ["fs is away"]) == error
    unknown = fact.model_copy(update={"kind": "rejected"})
    told = with_absent(error, unknown, ["fs is away"])
    assert told.message == "There is no server. fs is away"


@pytest.mark.parametrize("stands", [COMING, LISTED])
async def test_a_program_waits_for_the_servers_that_it_names(stands: object) -> None:
    servers = FakeServers(stands={"fs": stands, "git": READY})  # type: ignore[dict-item]
    request = ExecuteRequest(code="return await mcp.fs.read({});")
    waiting = asyncio.create_task(wait_until_announced(request, servers, 60))
    other = ExecuteRequest(code="return await mcp.git.log({});")
    await asyncio.wait_for(wait_until_announced(other, servers, 60), 5)
    assert not waiting.done()
    servers.stands = {"fs": READY, "git": READY}
    await asyncio.wait_for(waiting, 5)


@pytest.mark.parametrize("code", ["return await mcp.fs.read({});", None])
async def test_nobody_waits_for_a_server_that_failed_nor_for_ever(code: str | None) -> None:
    request = ExecuteRequest(code=code)
    failed = FakeServers(stands={"fs": FAILED})
    await asyncio.wait_for(wait_until_announced(request, failed, 60), 5)
    coming = FakeServers(stands={"fs": COMING})
    await asyncio.wait_for(wait_until_announced(request, coming, 0.01), 5)


async def test_a_request_that_is_not_accepted_is_not_held_up() -> None:
    request = ExecuteRequest.model_validate(
        {"dag": {"tasks": [{"id": "a", "tool": "fs:read", "dependsOn": ["a"]}]}}
    )
    coming = FakeServers(stands={"fs": COMING})
    await asyncio.wait_for(wait_until_announced(request, coming, 60), 5)


def test_servers_that_told_no_tools_are_named_with_the_reason() -> None:
    servers = FakeServers(stands={"fs": FAILED, "git": COMING, "web": READY})
    program = "await mcp.fs.a(); await mcp.git.b(); await mcp.web.c();"
    assert absent_servers(program, servers) == [
        "MCP server fs is not connected: cannot start it",
        "MCP server git is not connected: connecting",
    ]
