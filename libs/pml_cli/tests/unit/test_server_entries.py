"""`pml servers add|remove|reload|check`: entries of the file, and its use by the gateway."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from libs.pml_cli.tests.support.fakes import APPROVER, Gateway, pml

FILE = """{
  // a comment
  "mcpServers": {
    "My Files": {"command": "x", "alwaysAllow": []},
    "old": {"disabled": true},
    "web": {"url": "http://127.0.0.1:9/mcp?key=secret"},
  }
}"""


@pytest.fixture
def file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The mcpServers file of a stack."""
    monkeypatch.setenv("PML_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home" / "mcp.json"


def test_a_server_of_any_name_is_added_and_removed_by_either_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], file: Path
) -> None:
    for title in ("My Files", "Web 2.0"):
        words = ("--transport", "sse", "--url", "http://x/sse", "--no-trust-hints")
        assert pml(monkeypatch, "servers", "add", title, *words) == 0
    assert "addressed as web-2-0" in capsys.readouterr().out
    entries = json.loads(file.read_text())["mcpServers"]
    assert entries["Web 2.0"] == {"type": "sse", "url": "http://x/sse", "trust": "none"}
    assert pml(monkeypatch, "servers", "remove", "my-files", "--json") == 0
    assert json.loads(capsys.readouterr().out)["title"] == "My Files"
    assert pml(monkeypatch, "servers", "remove", "Web 2.0") == 0
    assert json.loads(file.read_text()) == {"mcpServers": {}}
    assert pml(monkeypatch, "servers", "remove", "web") == 2
    assert "has no server 'web'; it has: none" in capsys.readouterr().err


def test_entries_of_vs_code_stay_under_their_key(
    monkeypatch: pytest.MonkeyPatch, file: Path
) -> None:
    file.write_text('{"servers": {}, "inputs": []}')
    assert pml(monkeypatch, "servers", "add", "a", "--no-trust-hints", "--", "x") == 0
    assert list(json.loads(file.read_text())["servers"]) == ["a"]


def test_a_file_with_comments_is_not_rewritten(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], file: Path
) -> None:
    file.write_text(FILE)
    assert pml(monkeypatch, "servers", "remove", "old") == 2
    assert "comments is not rewritten" in capsys.readouterr().err
    assert file.read_text() == FILE
    file.write_text("[]")
    assert pml(monkeypatch, "servers", "remove", "old") == 2
    assert "must be a JSON object" in capsys.readouterr().err


def test_a_reload_tells_what_changed_and_is_the_approvers(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    faulty = [{"name": "x", "faults": ["mcpServers.x: must be an object"]}]
    found = {"added": ["a", "b"], "removed": [], "changed": [], "unchanged": ["c"]}
    gateway.answers["POST /api/servers/reload"] = (200, {**found, "faulty": faulty})
    assert pml(monkeypatch, "servers", "reload") == 0
    assert capsys.readouterr().out.splitlines() == [
        "added: a, b",
        "unchanged: c",
        "set aside x: mcpServers.x: must be an object",
    ]
    assert gateway.keys == [f"POST /api/servers/reload {APPROVER['Authorization']}"]


def test_a_check_shows_entries_names_and_faults(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], file: Path
) -> None:
    file.write_text(FILE)
    assert pml(monkeypatch, "servers", "check", str(file), "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [(one["name"], one["transport"], one["disabled"]) for one in found["entries"]] == [
        ("my-files", "stdio", False),
        ("web", "http", False),
        ("old", None, True),
    ]
    assert found["entries"][1]["target"] == "http://127.0.0.1:9/mcp"
    file.write_text(
        '{"mcpServers": {"a": {}, "Web": {"command": "x", "dev": 1}, "off": {"disabled": true}}}'
    )
    assert pml(monkeypatch, "servers", "check") == 1
    out = capsys.readouterr().out
    for word in ("faulty", "fine", "disabled", "'Web'", "dev has no effect here"):
        assert word in " ".join(out.split())


def test_a_check_of_a_file_that_is_none_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], file: Path
) -> None:
    assert pml(monkeypatch, "servers", "check") == 2
    assert "there is no file" in capsys.readouterr().err


def _scripted(monkeypatch: pytest.MonkeyPatch, *events: dict[str, object]) -> list[list[str]]:
    """Have the gateway's program print these events; return the arguments it gets."""
    asked: list[list[str]] = []

    def answers(words: list[str]) -> Iterator[dict[str, object]]:
        asked.append(words)
        yield from events

    monkeypatch.setattr("pml_cli.commands.server_programs._answers", answers)
    return asked


def test_a_login_prints_the_url_opens_it_and_tells_the_outcome(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], file: Path
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    url = "https://as.example/authorize?client_id=c"
    asked = _scripted(
        monkeypatch,
        {"event": "open", "url": url},
        {"event": "done", "name": "box", "tools": 3},
    )
    assert pml(monkeypatch, "servers", "login", "Box") == 0
    captured = capsys.readouterr()
    assert url in captured.err
    assert "logged in at box: 3 tools" in captured.out
    assert asked == [["login", str(file), "Box", "--logins", str(file.parent / "logins")]]
    assert opened == [url]
    assert pml(monkeypatch, "servers", "login", "Box", "--no-browser", "--json") == 0
    assert json.loads(capsys.readouterr().out)["tools"] == 3
    assert opened == [url]


def test_a_login_that_fails_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], file: Path
) -> None:
    _scripted(monkeypatch, {"event": "failed", "message": "the login was refused: not you"})
    assert pml(monkeypatch, "servers", "login", "box") == 1
    assert "the login was refused: not you" in capsys.readouterr().err


def test_the_program_is_the_gateways_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], file: Path
) -> None:
    file.write_text('{"mcpServers": {"box": {"command": "x"}}}')
    assert pml(monkeypatch, "servers", "login", "box") == 1
    assert "box is not reached over HTTP" in capsys.readouterr().err


def test_a_logout_deletes_the_tokens(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], file: Path
) -> None:
    kept = file.parent / "logins" / "my-box.json"
    kept.parent.mkdir()
    kept.write_text("{}")
    assert pml(monkeypatch, "servers", "logout", "My Box") == 0
    assert not kept.exists()
    assert pml(monkeypatch, "servers", "logout", "My Box") == 2
    assert "there is no login at 'My Box'" in capsys.readouterr().err
