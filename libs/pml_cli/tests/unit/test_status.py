"""`pml status` of the stack in this folder."""

import json
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from libs.pml_cli.tests.support.fakes import Gateway, pml
from pml_cli.render.parts import down_line
from pml_local.ports import free_port
from pml_local.state import PartDown, PartState, StackState, write_state


def running(home: Path, face: Gateway, port: int, **down: PartDown) -> None:
    """Record a stack run by this process, with an executor on a port."""
    executor = PartState(pid=os.getpid(), port=port, log=home / "executor.log")
    state = StackState(
        pid=os.getpid(),
        url=face.url,
        nats_url="",
        postgres_dsn="",
        parts={"executor": executor},
        down=down,
    )
    write_state(home, state)


def failing_part(next_try_s: float) -> PartDown:
    """A part that has failed twelve times since noon."""
    return PartDown(
        since=datetime(2026, 1, 1, 12, tzinfo=UTC),
        reason="ended with code 1",
        failures=12,
        next_try=datetime.now(UTC) + timedelta(seconds=next_try_s),
    )


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PML_HOME", str(tmp_path))
    return tmp_path


def test_the_walls_of_sandboxes_are_shown(
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
def test_an_executor_without_a_report_of_its_walls_is_skipped(
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


def test_a_part_that_is_down_is_shown_with_its_reason_and_next_restart(
    gateway: Gateway,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    port = int(gateway.url.rpartition(":")[2])
    running(home, gateway, port, registry=failing_part(3600), learner=failing_part(-0.1))
    gateway.answers["GET /healthz"] = (200, {"status": "ok", "checks": {}})
    assert pml(monkeypatch, "status") == 1
    shown = capsys.readouterr().out
    assert "registry is down since 2026-01-01 " in shown
    assert re.search(r"ended with code 1; 12 failures in a row, next try in \d+ s", shown)
    assert "12 failures in a row, restarting now" in shown
    assert pml(monkeypatch, "status", "--json") == 1
    told = json.loads(capsys.readouterr().out)["down"]
    assert set(told) == {"registry", "learner"}
    assert set(told["registry"]) == {"since", "reason", "failures", "next_try"}
    assert told["registry"]["since"] == "2026-01-01T12:00:00Z"


def test_the_time_until_the_next_restart_is_shown_in_seconds() -> None:
    part = failing_part(3600)
    assert "next try in 40 s" in down_line("learner", part, part.next_try - timedelta(seconds=40.2))
    assert "restarting now" in down_line("learner", part, part.next_try + timedelta(seconds=0.1))


def test_a_gateway_that_is_down_is_shown_like_any_other_part(
    gateway: Gateway,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PML_URL", f"http://127.0.0.1:{free_port()}")
    running(home, gateway, free_port(), gateway=failing_part(40.2))
    assert pml(monkeypatch, "status") == 4
    shown = capsys.readouterr().out
    assert "unreachable" in shown
    assert "gateway is down since" in shown
    assert pml(monkeypatch, "status", "--json") == 4
    told = json.loads(capsys.readouterr().out)
    assert told["health"]["status"] == "unreachable"
    assert list(told["down"]) == ["gateway"]
