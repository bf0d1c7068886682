"""`pml learner` against a scripted gateway."""

import json
from pathlib import Path

import pytest
from typing_extensions import override

from libs.pml_cli.tests.support.fakes import APPROVER, Gateway, pml

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
    drawn = capsys.readouterr().out
    assert "n1 → d1 false → n3" in drawn
    assert "priority 1.00 disk full fault of the capability" in drawn
    assert pml(monkeypatch, "learner", "trace", "x") == 2


class Parts(dict[str, tuple[int, object]]):
    """Gives its answers one after the other, whatever is asked."""

    @override
    def __getitem__(self, line: str) -> tuple[int, object]:
        return self.pop(next(iter(self)))


def test_a_rebuild_goes_on_until_nothing_is_left_and_is_the_approvers(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    part = {"rebuilt": 2, "changed": 1, "traces": 700, "missing": 0, "left": 1}
    last = {"rebuilt": 1, "changed": 0, "traces": 9, "missing": 3, "left": 0, "after": None}
    gateway.answers = Parts({"first": (200, {**part, "after": CAPABILITY}), "second": (200, last)})
    assert pml(monkeypatch, "learner", "rebuild", "--json") == 0
    assert gateway.asked == [
        ("POST /api/learning/rebuild", {"capability_id": None, "after": None}),
        ("POST /api/learning/rebuild", {"capability_id": None, "after": CAPABILITY}),
    ]
    assert gateway.keys == [f"POST /api/learning/rebuild {APPROVER['Authorization']}"] * 2
    said = capsys.readouterr()
    assert json.loads(said.out) == {"rebuilt": 3, "changed": 1, "traces": 709, "missing": 3}
    assert "2 rebuilt from 700 traces, 1 left" in said.err
    gateway.answers = {"POST /api/learning/rebuild": (200, last)}
    assert pml(monkeypatch, "learner", "rebuild", "--capability", CAPABILITY) == 0
    assert gateway.asked[-1][1] == {"capability_id": CAPABILITY, "after": None}
    assert "3 traces are lost: what they taught stays" in capsys.readouterr().out
    assert pml(monkeypatch, "learner", "rebuild", "--capability", "fs:a") == 2


def test_the_data_of_a_principal_is_deleted_after_a_question(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = "DELETE /api/principals/a%2Fb"
    gateway.answers[path] = (200, {"principal": "a/b", "deleted": 3, "not_ended": []})
    words = ("learner", "forget-principal", "a/b")
    assert pml(monkeypatch, *words) == 2  # no terminal to ask at
    assert gateway.asked == []
    assert "say --yes" in capsys.readouterr().err
    assert pml(monkeypatch, *words, "--yes") == 0
    assert (gateway.asked, gateway.keys) == ([(path, None)], [])
    assert "deleted the data of a/b: 3 workflows" in capsys.readouterr().out
    gateway.answers[path] = (200, {"principal": "a/b", "deleted": 0, "not_ended": [CAPABILITY]})
    assert pml(monkeypatch, *words, "--yes", "--admin") == 1
    assert len(gateway.keys) == 1
    assert f"workflow {CAPABILITY} has not ended" in capsys.readouterr().out


def test_a_question_that_is_not_agreed_to_deletes_nothing(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers = iter([False, True])

    def confirm(question: str) -> bool:
        assert "mira" in question
        return next(answers)

    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("pml_cli.commands.tracing.confirm", confirm)
    gateway.answers["DELETE /api/principals/mira"] = (
        200,
        {"principal": "mira", "deleted": 1, "not_ended": []},
    )
    assert pml(monkeypatch, "learner", "forget-principal", "mira") == 2
    assert (gateway.asked, "nothing was deleted" in capsys.readouterr().err) == ([], True)
    assert pml(monkeypatch, "learner", "forget-principal", "mira") == 0
