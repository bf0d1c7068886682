"""`pml servers`, and the trust in hints as `pml tools` shows it."""

import io
import json
import os
import sys
from pathlib import Path

import pytest

from libs.pml_cli.tests.support.fakes import Gateway, pml


@pytest.fixture
def file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The mcpServers file of a stack without one."""
    monkeypatch.setenv("PML_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "mcp.json"


def servers_in(file: Path) -> dict[str, object]:
    return json.loads(file.read_text(encoding="utf-8"))["mcpServers"]


def answers(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Simulate a terminal whose user types this text."""
    typed = io.StringIO(text)
    monkeypatch.setattr(typed, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", typed)


@pytest.mark.parametrize(
    ("flag", "trust"), [("--trust-hints", "hints"), ("--no-trust-hints", "none")]
)
def test_a_server_is_written_with_the_trust_in_its_hints(
    monkeypatch: pytest.MonkeyPatch, file: Path, flag: str, trust: str
) -> None:
    words = ("servers", "add", "git", flag, "--", "uvx", "mcp-server-git", "--repository", "/data")
    assert pml(monkeypatch, *words) == 0
    args = ["mcp-server-git", "--repository", "/data"]
    assert servers_in(file) == {"git": {"command": "uvx", "args": args, "trust": trust}}
    assert os.stat(file).st_mode & 0o777 == 0o600  # noqa: PTH116 - only its mode


def test_other_entries_of_the_file_are_unchanged(
    monkeypatch: pytest.MonkeyPatch, file: Path
) -> None:
    file.parent.mkdir()
    old = {"command": "old", "disabled": True, "note": "é"}
    file.write_text(json.dumps({"mcpServers": {"old": old}, "other": 1}), encoding="utf-8")
    url = "https://search.example/mcp"
    words = ("servers", "add", "web", "--url", url, "--no-trust-hints", "--json")
    assert pml(monkeypatch, *words) == 0
    assert servers_in(file) == {"old": old, "web": {"url": url, "trust": "none"}}
    assert json.loads(file.read_text(encoding="utf-8"))["other"] == 1


@pytest.mark.parametrize(("typed", "trust"), [("y\n", "hints"), ("n\n", "none"), ("\n", "none")])
def test_at_a_terminal_the_user_is_asked(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    file: Path,
    typed: str,
    trust: str,
) -> None:
    answers(monkeypatch, typed)
    assert pml(monkeypatch, "servers", "add", "box", "--", "box-server") == 0
    assert servers_in(file) == {"box": {"command": "box-server", "args": [], "trust": trust}}
    assert "run without asking" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("box", "--", "x"), "--trust-hints or --no-trust-hints"),
        (("box", "--trust-hints"), "either -- COMMAND ARGS… or --url URL"),
        (("box", "--trust-hints", "--url", "http://x/mcp", "--", "x"), "either -- COMMAND"),
        (("dns", "--trust-hints", "--", "x"), "'dns' is the name of PML's own tools"),
        (("Meta", "--trust-hints", "--", "x"), "'Meta' is the name of PML's own tools"),
        (("old", "--trust-hints", "--", "x"), "has a server 'old' already"),
        (("Old", "--trust-hints", "--", "x"), "has a server 'old' already"),
    ],
)
def test_an_invalid_server_is_an_error_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    file: Path,
    words: tuple[str, ...],
    complaint: str,
) -> None:
    file.parent.mkdir()
    file.write_text('{"mcpServers": {"old": {"command": "old"}}}')
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    assert pml(monkeypatch, "servers", "add", *words) == 2
    assert complaint in capsys.readouterr().err
    assert servers_in(file) == {"old": {"command": "old"}}


def test_an_invalid_file_is_unchanged(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    file.parent.mkdir()
    file.write_text('{"mcpServers": []}')
    assert pml(monkeypatch, "servers", "add", "box", "--trust-hints", "--", "x") == 2
    assert file.read_text() == '{"mcpServers": []}'


def test_servers_are_listed_with_trust_and_errors(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stands = {"state": "ready", "error": None, "tools": 3, "since": "2026-01-01T00:00:00Z"}
    twice = "read: listed 2 times, so none of them is used"
    listed: list[dict[str, object]] = [
        {"name": "fs", **stands, "hints_trusted": True, "warnings": []},
        {"name": "web", **stands, "hints_trusted": False, "warnings": [twice]},
    ]
    gateway.answers["GET /api/servers"] = (200, {"servers": listed})
    assert pml(monkeypatch, "servers", "list") == 0
    fs, web = capsys.readouterr().out.splitlines()[-2:]
    assert fs.split() == ["fs", "ready", "3", "trusted"]
    assert "not trusted" in web
    assert twice in web


def test_untrusted_hints_are_shown_as_such(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = {"server": "web", "name": "get", "annotations": {"read_only": None}}
    claims = {"read_only": True, "destructive": False}
    gateway.answers["GET /api/tools"] = (200, {"tools": [{**tool, "claims": claims}]})
    assert pml(monkeypatch, "tools") == 0
    assert "claims read_only, not trusted" in capsys.readouterr().out
