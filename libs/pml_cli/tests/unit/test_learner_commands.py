"""`pml learner` against a scripted gateway."""

import json
from pathlib import Path

import pytest

from libs.pml_cli.tests.support.fakes import Gateway, pml

CAPABILITY = "bfde1ab3-3f21-5896-84dd-b846b27ca7e8"
PAGE = json.loads(
    (
        Path(__file__).parents[3] / "pml_common/examples/qry.learner.list-traces.v1.reply.json"
    ).read_text()
)


def test_traces_are_listed_by_priority(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.answers["GET /api/traces"] = (200, PAGE)
    asked = ("--order", "priority", "--capability", CAPABILITY, "--intent", "a b", "--limit", "5")
    assert pml(monkeypatch, "learner", "traces", *asked) == 0
    path = f"/api/traces?capability_id={CAPABILITY}&intent=a+b&order=priority&limit=5"
    assert gateway.asked == [(f"GET {path}", None)]
    (line,) = [each for each in capsys.readouterr().out.splitlines() if "error" in each]
    assert PAGE["traces"][0]["trace_id"] in line
    assert "1.00" in line
    assert pml(monkeypatch, "learner", "traces", "--capability", "fs:a") == 2
    assert "is not a capability's id" in capsys.readouterr().err


def test_one_trace_is_drawn(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = PAGE["traces"][0] | {"parent_trace_id": PAGE["traces"][0]["workflow_id"]}
    gateway.answers[f"GET /api/trace/{trace['trace_id']}"] = (200, trace)
    assert pml(monkeypatch, "learner", "trace", trace["trace_id"]) == 0
    assert "n1 → d1 false → n3" in capsys.readouterr().out
    assert pml(monkeypatch, "learner", "trace", "x") == 2
