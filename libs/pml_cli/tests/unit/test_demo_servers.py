"""The demo's MCP servers: pinned, confined, fetched by their own package managers."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from pml_cli.demo.narrator import DemoFailed
from pml_cli.demo.servers import DemoServer, demo_servers, fetch, write_config

EXAMPLES = Path(__file__).parents[4] / "examples"
PINNED = ("npm:@modelcontextprotocol/server-filesystem@", "mcp-server-git@")


def program(folder: Path, name: str) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    return file


def pins(argument_lists: Sequence[Sequence[str]]) -> list[str]:
    return sorted(word for words in argument_lists for word in words if word.startswith(PINNED))


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def server(*commands: tuple[str, ...]) -> DemoServer:
    return DemoServer(name="x", package="x 1", description="", fetch=commands, command=("x",))


def test_the_filesystem_server_gets_its_folder_and_nothing_else(tmp_path: Path) -> None:
    filesystem, _ = demo_servers(tmp_path)
    allowed = {word for word in filesystem.command if word.startswith("--allow")}
    assert allowed == {"--allow-read=.", "--allow-write=."}
    assert "-A" not in filesystem.command
    assert filesystem.cwd == tmp_path


def test_the_git_server_is_run_by_the_uv_that_runs_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uv, uvx = program(tmp_path / "own", "uv"), program(tmp_path / "own", "uvx")
    ours, beside = program(tmp_path / "ours", "python"), program(tmp_path / "ours", "uvx")
    program(tmp_path / "ours", "deno")
    elsewhere = program(tmp_path / "path", "uvx")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("UV", str(uv))
    monkeypatch.setattr(sys, "executable", str(ours))
    for found in (uvx, beside, elsewhere):
        assert demo_servers(tmp_path)[1].command[0] == str(found)
        found.unlink()
    assert demo_servers(tmp_path)[1].command[:3] == (str(uv), "tool", "run")
    monkeypatch.delenv("UV")
    with pytest.raises(DemoFailed, match="neither uvx nor uv was found: install uv"):
        demo_servers(tmp_path)


def test_the_first_way_to_fetch_that_works_is_enough(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    fails = python("raise SystemExit(1)")
    works = python(f"open({str(mark)!r}, 'x')")
    fetch(server(fails, works, works))
    assert mark.exists()


def test_servers_are_fetched_by_the_certificates_of_the_system_or_those_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("UV_SYSTEM_CERTS", raising=False)
    monkeypatch.setenv("DENO_TLS_CA_STORE", "mozilla")
    for name, value in {"UV_SYSTEM_CERTS": "true", "DENO_TLS_CA_STORE": "mozilla"}.items():
        fetch(server(python(f"import os; assert os.environ[{name!r}] == {value!r}")))


def test_what_cannot_be_fetched_says_why_and_what_it_needs() -> None:
    broken = server(python("raise SystemExit('no such package')"))
    with pytest.raises(DemoFailed, match=r"x 1 could not be fetched: no such package\n.*network"):
        fetch(broken)


def test_the_file_for_the_gateway_holds_both(tmp_path: Path) -> None:
    servers = demo_servers(tmp_path)
    write_config(tmp_path / "mcp.json", servers)
    entries = json.loads((tmp_path / "mcp.json").read_text())["mcpServers"]
    assert [entries["fs"]["command"], *entries["fs"]["args"]] == list(servers[0].command)
    assert entries["fs"]["cwd"] == str(tmp_path)
    assert [entries["git"]["command"], *entries["git"]["args"]] == list(servers[1].command)
    assert "cwd" not in entries["git"]
    assert {entry["trust"] for entry in entries.values()} == {"hints"}


def test_the_examples_pin_what_the_demo_pins(tmp_path: Path) -> None:
    entries = json.loads((EXAMPLES / "mcp.json").read_text())["mcpServers"]
    shown = pins([entry["args"] for entry in entries.values()])
    assert len(shown) == 2
    assert shown == pins([server.command for server in demo_servers(tmp_path)])
