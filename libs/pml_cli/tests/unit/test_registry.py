"""`pml registry index` and `pml registry reindex`; discovery by words alone."""

import json

import pytest

from libs.pml_cli.tests.support.fakes import KEY, Gateway, pml
from pml_cli.client import Json
from pml_cli.commands import registry

MODEL: Json = {"name": "small[1]", "dimension": 384, "state": "serving", "complete": True}


def state(run: str | None, stored: int = 0, problem: str | None = None, **more: object) -> Json:
    """A state of the index, with a rebuild in this state."""
    progress = {"state": run, "total": 9, "stored": stored, "removed": 1, "problem": problem}
    models = [{**MODEL, "complete": run != "running"}]
    shown: Json = {"index": "qdrant", "pending": 0, "models": models, "reindex": None}
    return {**shown, **({"reindex": progress} if run else {}), **more}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask again at once."""
    monkeypatch.setattr(registry, "POLL_S", 0.0)


def test_the_index_is_shown(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.answers["GET /api/index"] = (200, state("running", 4, "no answer", pending=7))
    assert pml(monkeypatch, "registry", "index") == 0
    assert capsys.readouterr().out.splitlines() == [
        "vectors are searched in qdrant",
        "model small[1] (384 numbers): serving, not all in the index yet",
        "changes that the index has not had: 7",
        "rebuild running: 4 of 9 vectors stored, 1 removed; no answer",
    ]


def test_a_rebuild_is_followed_to_its_end(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.answers["POST /api/index/reindex"] = (200, state("running"))
    gateway.answers["GET /api/index"] = (200, state("done", 9))
    assert pml(monkeypatch, "registry", "reindex") == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[-1] == "rebuild done: 9 of 9 vectors stored, 1 removed"
    assert "0 of 9 vectors stored" in err
    assert gateway.keys == [f"POST /api/index/reindex Bearer {KEY}"]
    assert pml(monkeypatch, "registry", "reindex", "--json") == 0
    out, err = capsys.readouterr()
    assert (json.loads(out), err) == (state("done", 9), "")


def test_a_rebuild_that_does_not_end_in_time_goes_on(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.answers["POST /api/index/reindex"] = (200, state("running"))
    gateway.answers["GET /api/index"] = (200, state("running", 3))
    assert pml(monkeypatch, "registry", "reindex", "--wait", "0.05") == 1
    assert "rebuild running: 3 of 9" in capsys.readouterr().out
    assert pml(monkeypatch, "registry", "reindex", "--wait", "0") == 0


def test_an_index_in_postgres_is_not_rebuilt(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = {"error": {"kind": "conflict", "message": "there is no other index to rebuild"}}
    gateway.answers["POST /api/index/reindex"] = (409, refused)
    assert pml(monkeypatch, "registry", "reindex") == 1
    assert "there is no other index to rebuild" in capsys.readouterr().err


def test_results_by_words_alone_are_said_to_be(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.answers["POST /api/discover"] = (200, {"hits": [], "total": 0, "degraded": True})
    assert pml(monkeypatch, "discover", "read a file") == 0
    assert "found by words alone" in capsys.readouterr().err
    assert pml(monkeypatch, "discover", "read a file", "--json") == 0
    assert json.loads(capsys.readouterr().out)["degraded"] is True
