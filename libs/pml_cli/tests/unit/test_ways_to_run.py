"""Dry runs, DAGs and single tools: requests and output."""

import json
from pathlib import Path

import pytest

from libs.pml_cli.tests.support.fakes import Gateway, pml
from libs.pml_cli.tests.unit.test_commands import SUCCESS, WORKFLOW


def test_a_dry_run_sends_its_mocks_and_lists_mocked_calls(
    gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    mocks = tmp_path / "mocks.json"
    mocks.write_text('{"fs:write": [1, 2]}', encoding="utf-8")
    tasks = [
        {"id": "n1.0", "tool": "fs:read", "mocked": False},
        {"id": "n2.0", "tool": "fs:write", "mocked": True},
    ]
    gateway.answers["POST /api/execute"] = (200, SUCCESS | {"dry_run": True, "tasks": tasks})
    words = ("--capability", "fs:greet", "--dry-run", "--mocks", str(mocks))
    assert pml(monkeypatch, "execute", *words) == 0
    assert gateway.asked[0][1] == {
        "capability": "fs:greet",
        "dry_run": True,
        "dry_run_mocks": {"fs:write": [1, 2]},
    }
    assert "dry run, not called: fs:write (n2.0)" in capsys.readouterr().out


def test_a_run_is_shown_as_a_dag_and_can_be_sent_again(
    gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    task = {"id": "n2.0", "tool": "fs:read", "arguments": {"n": 1}, "depends_on": ["n1.0"]}
    drawn = {"dag": {"tasks": [task]}, "args": {"a": 1, "b": 1}, "left_out": ["n3.0"]}
    gateway.answers[f"GET /api/workflows/{WORKFLOW}/dag"] = (200, drawn)
    assert pml(monkeypatch, "trace", WORKFLOW, "--as", "dag") == 0
    shown = capsys.readouterr().out
    assert "n2.0  fs:read  n1.0" in shown
    assert "failed and left out: n3.0" in shown
    gateway.answers["POST /api/execute"] = (200, SUCCESS)
    for document in (drawn, drawn["dag"]):
        file = tmp_path / "dag.json"
        file.write_text(json.dumps(document), encoding="utf-8")
        assert pml(monkeypatch, "execute", "--dag", str(file), "--arg", "b=2") == 0
    assert [request for _, request in gateway.asked[1:]] == [
        {"dag": drawn["dag"], "args": {"a": 1, "b": 2}},
        {"dag": drawn["dag"], "args": {"b": 2}},
    ]


def test_one_tool_is_called_with_the_arguments(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway.answers["POST /api/execute"] = (200, SUCCESS)
    assert pml(monkeypatch, "execute", "--tool", "fs:read", "--arg", "path=a") == 0
    assert gateway.asked[0][1] == {"tool": {"tool_id": "fs:read"}, "args": {"path": "a"}}
