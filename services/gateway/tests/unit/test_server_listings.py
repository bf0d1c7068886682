"""Programs that name MCP servers whose tools are not listed yet."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Literal

import pytest

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.structure import NO_SERVER, NO_TOOLS, Diagnostic
from pml_gateway.application.server_listings import (
    absent_server_of,
    absent_servers,
    wait_until_announced,
)
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.servers.named_servers import named_in, with_absent
from pml_gateway.ports import ServerStatus
from services.gateway.tests.support.builders import rejected, workflow
from services.gateway.tests.support.harness import READY, FakeServers

Severity = Literal["error", "warning"]
RejectionKind = Literal["syntax", "rejected"]
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
        ("mcp.fs_read({})", ["fs"]),
        ("callTool('fs_read', {})", ["fs"]),
        ("mcp__fs__read({})", ["fs"]),
        ("codemode.my_fs_read({})", ["my-fs"]),
    ],
)
def test_a_server_is_named_by_its_whole_name(program: str, names: list[str]) -> None:
    assert named_in(program, ["fs", "my-fs"]) == names


def _diagnostics(*messages: str, severity: Severity = "error") -> tuple[Diagnostic, ...]:
    return tuple(
        Diagnostic(severity=severity, message=message, line=1, column=1) for message in messages
    )


def _told(kind: RejectionKind, *found: Diagnostic) -> list[str]:
    rejection = rejected(workflow()).model_copy(update={"kind": kind, "diagnostics": found})
    return [one.message for one in with_absent(rejection, {"fs": "fs is away"}).diagnostics]


def test_an_absent_server_is_explained_in_place_of_there_is_no_server() -> None:
    found = _diagnostics(f'{NO_SERVER} "fs". Did you mean ls?', f'{NO_SERVER} "fsx". No.')
    assert _told("rejected", *found) == ["fs is away.", f'{NO_SERVER} "fsx". No.']
    assert _told("rejected", *_diagnostics(f"fs:read cannot be called: {NO_TOOLS}")) == [
        "fs is away."
    ]


def test_an_absent_server_is_explained_behind_another_error() -> None:
    warning = _diagnostics("Unused.", severity="warning")
    assert _told("rejected", *warning, *_diagnostics("No such tool.", "Nor that.")) == [
        "Unused.",
        "No such tool. fs is away",
        "Nor that.",
    ]


def test_only_programs_that_were_understood_are_told_of_absent_servers() -> None:
    assert _told("syntax", *_diagnostics("Expected ;.")) == ["Expected ;."]
    assert _told("rejected", *_diagnostics("Unused.", severity="warning")) == ["Unused."]


@pytest.mark.parametrize("stands", [COMING, LISTED])
async def test_a_program_waits_for_the_servers_that_it_names(stands: ServerStatus) -> None:
    servers = FakeServers(stands={"fs": stands, "git": READY})
    request = ExecuteRequest(code="return await mcp.fs.read({});")
    waiting = asyncio.create_task(wait_until_announced(request, servers, 60))
    other = ExecuteRequest(code="return await mcp.git.log({});")
    await asyncio.wait_for(wait_until_announced(other, servers, 60), PATIENCE_S)
    assert not waiting.done()
    servers.stands = {"fs": READY, "git": READY}
    await asyncio.wait_for(waiting, PATIENCE_S)


@pytest.mark.parametrize("code", ["return await mcp.fs.read({});", None])
async def test_nobody_waits_for_a_server_that_failed_nor_for_ever(code: str | None) -> None:
    request = ExecuteRequest(code=code)
    failed = FakeServers(stands={"fs": FAILED})
    await asyncio.wait_for(wait_until_announced(request, failed, 60), PATIENCE_S)
    coming = FakeServers(stands={"fs": COMING})
    await asyncio.wait_for(wait_until_announced(request, coming, 0.01), PATIENCE_S)


async def test_a_request_that_is_not_accepted_is_not_held_up() -> None:
    request = ExecuteRequest.model_validate(
        {"dag": {"tasks": [{"id": "a", "tool": "fs:read", "depends_on": ["a"]}]}}
    )
    coming = FakeServers(stands={"fs": COMING})
    await asyncio.wait_for(wait_until_announced(request, coming, 60), PATIENCE_S)


def test_servers_that_told_no_tools_are_named_with_the_reason() -> None:
    odd = replace(READY, tools=0, warnings=("get: set aside, no",))
    lost = replace(COMING, error="it closed the connection")
    stands = {"fs": FAILED, "git": COMING, "web": READY, "odd": odd, "lost": lost}
    servers = FakeServers(stands=stands)
    program = "await mcp.fs.a(); await mcp.git.b(); await mcp.web.c(); mcp.odd.d(); mcp.lost.e();"
    again = "Its tools are not known yet; try again in a moment"
    told = {
        "fs": "MCP server fs is configured, but failed: cannot start it. The gateway keeps trying; "
        "check that it runs and that its entry is right, then try again",
        "git": f"MCP server git is configured and still connecting, for 3 s. {again}",
        "odd": "MCP server odd is connected, but lists no tool that can be used: "
        "get: set aside, no",
        "lost": "MCP server lost is configured and still connecting, for 3 s after: it closed the "
        f"connection. {again}",
    }
    now = READY.since + timedelta(seconds=3)
    assert absent_servers(program, servers, now) == told
    assert absent_server_of("git_log", servers, now) == told["git"]
    assert absent_server_of("web_get", servers, now) is None
    bare = {"odd": replace(odd, prefixed=False), "git": replace(COMING, prefixed=False)}
    assert absent_server_of("log", FakeServers(stands=bare), now) == told["git"]
    assert absent_server_of("odd_a", FakeServers(stands=bare), now) == told["odd"]
    assert absent_server_of("log", FakeServers(stands={"odd": bare["odd"]}), now) is None
