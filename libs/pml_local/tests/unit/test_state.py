"""The stored state of a running stack."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_local.down_parts import DownParts
from pml_local.events import PartExited, PartReady, PartRestarting, PartStarting, PartStopped
from pml_local.leftovers import end_leftovers
from pml_local.state import (
    PartDown,
    PartState,
    StackState,
    read_state,
    remove_state,
    write_state,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def _state(pid: int, part_pid: int | None = None) -> StackState:
    parts = {} if part_pid is None else {"x": PartState(pid=part_pid, port=1, log=Path("x.log"))}
    return StackState(
        pid=pid, url="http://127.0.0.1:1", nats_url="nats://", postgres_dsn="pg://", parts=parts
    )


@pytest.fixture(params=["linux", "darwin"])
def _system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Look processes up in /proc, and by psutil."""
    monkeypatch.setattr("pml_local.state.sys", SimpleNamespace(platform=request.param))


@pytest.mark.usefixtures("_system")
def test_a_running_stack_is_read_back(tmp_path: Path) -> None:
    down = PartDown(since=NOON, reason="ended", failures=1, next_try=NOON)
    state = _state(os.getpid(), os.getpid())._replace(
        down={"learner": down}, approver_key=tmp_path / "key"
    )
    write_state(tmp_path, state)
    assert read_state(tmp_path) == state
    remove_state(tmp_path)
    assert read_state(tmp_path) is None


@pytest.mark.usefixtures("_system")
def test_a_dead_supervisor_runs_no_stack(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    write_state(tmp_path, _state(ended.pid))
    assert read_state(tmp_path) is None


def test_a_zombie_runs_no_stack(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    write_state(tmp_path, _state(ended.pid))
    assert read_state(tmp_path) is None
    ended.wait()


@pytest.mark.usefixtures("_system")
def test_a_later_process_of_the_same_number_is_not_the_supervisor(tmp_path: Path) -> None:
    write_state(tmp_path, _state(os.getpid()))
    os.utime(tmp_path / "stack.json", (1, 1))
    assert read_state(tmp_path) is None


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}'])
def test_a_broken_record_is_no_stack(tmp_path: Path, content: str) -> None:
    (tmp_path / "stack.json").write_text(content)
    assert read_state(tmp_path) is None


def test_parts_that_outlived_their_supervisor_are_ended(tmp_path: Path) -> None:
    sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        write_state(tmp_path, _state(2**22, sleeper.pid))
        end_leftovers(tmp_path)
        assert sleeper.wait(timeout=PATIENCE_S) != 0
        assert not (tmp_path / "stack.json").exists()
    finally:
        sleeper.kill()
        sleeper.wait()


def test_a_part_is_down_from_its_first_failure_until_it_is_ready() -> None:
    down, later = DownParts(), NOON + timedelta(seconds=20)
    assert not down.observe(PartExited("registry", 1, Path("log")), NOON)
    assert down.observe(PartRestarting("registry", "ended with code 1", 1, 0.1), NOON)
    assert not down.observe(PartStarting("registry"), NOON)
    assert down.observe(PartRestarting("registry", "was not ready", 2, 51.2), later)
    assert down.parts == {
        "registry": PartDown(
            since=NOON,
            reason="was not ready",
            failures=2,
            next_try=later + timedelta(seconds=51.2),
        )
    }
    assert down.observe(PartReady("registry", 7, 1, 0.3), later)
    assert not down.observe(PartReady("registry", 7, 1, 0.3), later)
    assert down.parts == {}


def test_a_part_that_was_stopped_is_not_down() -> None:
    down = DownParts()
    down.observe(PartRestarting("learner", "ended with code 1", 1, 0.1), NOON)
    down.observe(PartStopped("learner", 0), NOON)
    assert down.parts == {}
