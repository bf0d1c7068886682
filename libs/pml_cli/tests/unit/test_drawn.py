"""Display of a capability's definition and invocations."""

import json

import pytest

from libs.pml_cli.tests.support.fakes import Gateway, pml

PATH = "/api/capabilities/fs:report"
Json = dict[str, object]


def _edge(source: str, target: str, type_: str, **more: object) -> Json:
    fields = {"conditional": False, "coverage": None}
    return {"data": {"source": source, "target": target, "type": type_, **fields, **more}}


def _node(id_: str, label: str, kind: str = "tool", *sites: str) -> Json:
    return {"data": {"id": id_, "label": label, "kind": kind, "node_ids": list(sites)}}


def _call(id_: str, parent: str | None, at: float, **more: object) -> Json:
    fields = {
        "id": id_,
        "label": id_,
        "parent": parent,
        "started_at": 1_795_253_400_000.0 + at,
        "duration_ms": 4.0,
        "success": True,
        "error_kind": None,
        "parallel": False,
        "mocked": False,
    }
    return {"data": {**fields, **more}}


DEFINITION: Json = {
    "version": 2,
    "complete": False,
    "elements": {
        "nodes": [
            _node("c1", "fs:report", "capability"),
            _node("fs:read", "fs:read", "tool", "n1", "n3"),
            _node("c2", "fs:[tidy]", "capability", "n2"),
        ],
        "edges": [
            _edge("c1", "fs:read", "contains"),
            _edge("fs:read", "c2", "provides", coverage="strict"),
            _edge("fs:read", "c2", "dependency", conditional=True),
            _edge("c1", "c2", "dependency"),
        ],
    },
}
INVOCATIONS: Json = {
    "name": "fs:report",
    "runs": 1,
    "total": 3,
    "complete": True,
    "elements": {
        "nodes": [
            _call("fs:report_1", None, 0),
            _call("fs:read_1", "fs:report_1", 1, parallel=True, mocked=True),
            _call("fs:tidy_1", "fs:report_1", 2, success=False, error_kind="tool_error"),
            _call("fs:read_2", "fs:tidy_1", 3),
        ],
        "edges": [],
    },
}


def test_a_definition_has_each_tool_and_capability_once(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.answers[f"GET {PATH}/definition"] = (200, DEFINITION)
    assert pml(monkeypatch, "capabilities", "fs:report", "--as", "definition") == 0
    told = [line.lstrip("│├└─ ").rstrip() for line in capsys.readouterr().out.splitlines()]
    assert told == [
        "fs:report version 2",
        "fs:read n1, n3",
        "provides (strict) → fs:[tidy]",
        "dependency maybe → fs:[tidy]",
        "capability fs:[tidy] n2",
        "dependency → fs:[tidy]",
        "not everything is shown",
    ]


def test_invocations_have_each_call_with_its_time(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.answers[f"GET {PATH}/invocations"] = (200, INVOCATIONS)
    words = ("capabilities", "fs:report", "--as", "invocations", "--limit", "7")
    assert pml(monkeypatch, *words) == 0
    assert gateway.asked == [(f"GET {PATH}/invocations?limit=7", None)]
    told = [line.lstrip("│├└─ ").rstrip() for line in capsys.readouterr().out.splitlines()]
    assert told == [
        "fs:report 1 of 3 runs",
        "✓ fs:report_1 2026-11-21 09:30:00Z 4.0 ms",
        "✓ fs:read_1 4.0 ms at 1.0 ms ∥ mock",
        "✗ tool_error fs:tidy_1 4.0 ms at 2.0 ms",
        "✓ fs:read_2 4.0 ms at 3.0 ms",
    ]
    assert pml(monkeypatch, *words, "--json") == 0
    assert json.loads(capsys.readouterr().out) == INVOCATIONS
