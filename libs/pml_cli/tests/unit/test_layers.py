"""DAGs that wait for approval between layers: requests, display and decisions."""

import json
from pathlib import Path

import pytest

from libs.pml_cli.tests.support.fakes import Gateway, pml
from libs.pml_cli.tests.unit.test_commands import WORKFLOW
from pml_cli.client import Json

LAYER: Json = {
    "number": 2,
    "of": 3,
    "done": [{"task": "read", "node_id": "n1", "tool": "fs:read", "preview": "[dim]a\x1b[2J"}],
    "next": [
        {
            "task": "write",
            "node_id": "n2",
            "tool": "fs:write",
            "elevated": True,
            "arguments": {
                "path": {"type": "literal", "value": "/a"},
                "mode": {"type": "parameter", "parameter_name": "mode"},
                "text": {"type": "reference", "expression": "t1.missing", "node_id": "n1"},
                "all": {"type": "array", "items": []},
            },
        },
        {"task": "look", "node_id": "n3", "tool": "fs:read", "elevated": False, "arguments": {}},
    ],
}
ASKED: Json = {"id": "a-2", "begun": True, "reasons": ["Layer 1 of 3 is done."], "layer": LAYER}
SHOWN = (
    "done read (fs:read) = [dim]a",
    "next, elevated write (fs:write)",
    "path = /a",
    "mode = the caller's mode",
    "text = t1.missing",
    "all = known in part only",
    "next look (fs:read)",
)


def test_a_dag_asks_for_approval_between_its_layers_and_says_how_to_decide(
    gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    dag = {"tasks": [{"id": "read", "tool": "fs:read"}]}
    file = tmp_path / "dag.json"
    file.write_text(json.dumps(dag), encoding="utf-8")
    waits = {"status": "approval_required", "workflow_id": WORKFLOW, "approval": ASKED}
    gateway.answers["POST /api/execute"] = (200, waits)
    assert pml(monkeypatch, "execute", "--dag", str(file), "--per-layer-validation") == 3
    assert gateway.asked[0][1] == {"dag": dag, "per_layer_validation": True}
    out = capsys.readouterr().out
    for line in SHOWN:
        assert line in out
    assert "\x1b[2J" not in out
    for word in ("continue", "abort", "replan"):
        assert f"pml approvals {word} {WORKFLOW} --approval a-2" in out


def test_a_pending_layer_is_listed_with_results_and_next_tasks(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    one = ASKED | {"workflow_id": WORKFLOW, "approval_id": "a-2", "expires_at": "soon"}
    gateway.answers["GET /api/approvals"] = (200, {"approvals": [one], "total": 1})
    assert pml(monkeypatch, "approvals", "list") == 0
    out = capsys.readouterr().out
    for line in SHOWN:
        assert line in out


def test_a_decision_lets_a_layer_run_or_ends_the_dag(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = f"POST /api/workflows/{WORKFLOW}/approval"
    gateway.answers[path] = (200, {"status": "running", "workflow_id": WORKFLOW})
    question = {"outcome": None, "shown_digest": "ab" * 32, "whole": True}
    gateway.answers[path.replace("POST", "GET")] = (200, question)
    assert pml(monkeypatch, "approvals", "continue", WORKFLOW, "--approval", "a-2") == 0
    assert pml(monkeypatch, "approvals", "abort", WORKFLOW, "--approval", "a-2") == 0
    sent = [body for _, body in gateway.asked if body]
    shown = {"shown": {"digest": "ab" * 32, "whole": True}}
    assert sent == [
        {"decision": "continue", "wait": False, "approval_id": "a-2", **shown},
        {"decision": "abort", "wait": False, "approval_id": "a-2"},
    ]
    assert "continues" in (out := capsys.readouterr().out)
    assert "aborted" in out
