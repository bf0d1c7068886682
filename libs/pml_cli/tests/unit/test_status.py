"""What `pml status` tells of the stack on this folder."""

import json
import os
from pathlib import Path

import pytest

from libs.pml_cli.tests.scripted import Gateway, pml
from pml_local.ports import free_port
from pml_local.state import PartState, StackState, write_state


def running(home: Path, gateway: Gateway, port: int) -> None:
    """A stack of this very process, with an executor that answers on a port."""
    executor = PartState(pid=os.getpid(), port=port, log=home / "executor.log")
    state = StackState(
        pid=os.getpid(), url=gateway.url, nats_url="", postgres_dsn="", parts={"executor": executor}
    )
    write_state(home, state)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PML_HOME", str(tmp_path))
    return tmp_path


def test_the_walls_around_sandboxes_are_told(
    gateway: Gateway,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    running(home, gateway, int(gateway.url.rpartition(":")[2]))
    walls = "landlock, seccomp (no bubblewrap: bwrap is not installed)"
    gateway.answers["GET /healthz"] = (200, {"status": "ok", "checks": {"walls": walls}})
    assert pml(monkeypatch, "status") == 0
    assert f"sandbox walls: {walls}" in capsys.readouterr().out
    assert pml(monkeypatch, "status", "--json") == 0
    assert json.loads(capsys.readouterr().out)["walls"] == walls


@pytest.mark.parametrize("answers", [False, True], ids=["is away", "says nothing"])
def test_an_executor_that_tells_nothing_of_its_walls_is_passed_over(
    gateway: Gateway,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answers: bool,
) -> None:
    running(home, gateway, int(gateway.url.rpartition(":")[2]) if answers else free_port())
    gateway.answers["GET /healthz"] = (200, {"status": "ok", "checks": {}})
    assert pml(monkeypatch, "status", "--json") == 0
    assert json.loads(capsys.readouterr().out)["walls"] is None
