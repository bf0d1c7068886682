"""`pml servers diff` and `pml servers accept`."""

import json

import pytest

from libs.pml_cli.tests.support.fakes import KEY, Gateway, pml

DIFF = [
    "--- accepted description",
    "+++ listed description",
    "@@ -1 +1 @@",
    "-Reads.",
    "+[b]Sends.",
]
READ = {
    "name": "read",
    "definition_hash": "ab" * 32,
    "changes": [{"part": "description", "diff": DIFF}],
}
WRITE = {**READ, "name": "write", "definition_hash": "cd" * 32}


@pytest.fixture
def held(gateway: Gateway) -> Gateway:
    """A server with two tools in quarantine; the gateway accepts what it is sent."""
    held = {"server": "fs", "tools": [READ, WRITE]}
    gateway.answers["GET /api/servers/fs/quarantine"] = (200, held)
    gateway.answers["POST /api/servers/fs/accept"] = (200, {"server": "fs", "tools": [WRITE]})
    return gateway


def test_what_changed_is_shown_line_by_line(
    held: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pml(monkeypatch, "servers", "diff", "fs", "read") == 0
    shown = capsys.readouterr().out
    assert shown.splitlines() == ["fs:read", *(f"  {line}" for line in DIFF)]
    assert pml(monkeypatch, "servers", "diff", "fs", "read", "--json") == 0
    assert json.loads(capsys.readouterr().out) == READ
    assert held.keys == []


def test_a_tool_that_is_not_in_quarantine_has_no_difference(
    held: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pml(monkeypatch, "servers", "diff", "fs", "stat") == 1
    assert "fs:stat is not in quarantine" in capsys.readouterr().err


def test_a_definition_is_accepted_as_it_was_shown(
    held: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pml(monkeypatch, "servers", "accept", "fs", "read") == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == ["accepted fs:read", "still in quarantine: fs:write"]
    assert "+[b]Sends." in err
    accepted = {"tools": {"read": "ab" * 32}}
    assert held.asked[-1] == ("POST /api/servers/fs/accept", accepted)
    assert held.keys == [f"POST /api/servers/fs/accept Bearer {KEY}"]


def test_without_names_all_are_accepted(
    held: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    held.answers["POST /api/servers/fs/accept"] = (200, {"server": "fs", "tools": []})
    assert pml(monkeypatch, "servers", "accept", "fs", "--json") == 0
    answer = {"server": "fs", "accepted": ["read", "write"], "quarantined": []}
    assert json.loads(capsys.readouterr().out) == answer


def test_accepting_again_changes_nothing(
    held: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    held.answers["GET /api/servers/fs/quarantine"] = (200, {"server": "fs", "tools": []})
    assert pml(monkeypatch, "servers", "accept", "fs", "read") == 0
    assert capsys.readouterr().out == "nothing to accept\n"
    assert held.keys == []


def test_tools_in_quarantine_are_listed_with_their_server(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    held = {"server": "fs", "name": "read", "changed": ["description", "input schema"]}
    server = {"name": "fs", "state": "ready", "tools": 2, "prefixed": False, "quarantined": [held]}
    gateway.answers["GET /api/servers"] = (200, {"servers": [server]})
    assert pml(monkeypatch, "servers", "list") == 0
    shown = capsys.readouterr().out
    assert "read: quarantined, changed description, input schema" in shown
    assert "tools have their own names" in shown
