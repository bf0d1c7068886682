"""The key that a decision is sent with, and its recipient."""

import os
from pathlib import Path

import pytest

from libs.pml_cli.tests.support.fakes import APPROVER, KEY, Gateway, pml
from pml_cli.credentials import deciding_headers
from pml_cli.errors import CommandError
from pml_local.state import StackState, write_state

WORKFLOW = "4d0b6fb2-acbc-5f0f-9660-00e28ec29407"
DECIDED = {"status": "running", "workflow_id": WORKFLOW}


def _stack_at(home: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Record a running stack whose supervisor is this process."""
    monkeypatch.setenv("PML_HOME", str(home))
    monkeypatch.delenv("PML_APPROVER_KEY_FILE")
    key = home / "approver.key"
    key.write_text(KEY)
    state = StackState(
        pid=os.getpid(), url=url, nats_url="", postgres_dsn="", parts={}, approver_key=key
    )
    write_state(home, state)


def test_a_decision_alone_is_sent_with_the_key(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway.answers[f"POST /api/workflows/{WORKFLOW}/approval"] = (200, DECIDED)
    gateway.answers["GET /api/approvals"] = (200, {"approvals": [], "total": 0})
    gateway.answers["POST /api/execute"] = (200, DECIDED)
    assert pml(monkeypatch, "approvals", "list") == 0
    assert pml(monkeypatch, "execute", "--capability", "x:y") == 5
    assert gateway.keys == []
    assert pml(monkeypatch, "approvals", "deny", WORKFLOW, "--json") == 0
    assert gateway.keys == [f"POST /api/workflows/{WORKFLOW}/approval Bearer {KEY}"]


def test_the_named_key_file_wins(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    gateway.answers[f"POST /api/workflows/{WORKFLOW}/approval"] = (200, DECIDED)
    (tmp_path / "other.key").write_text("another\n")
    words = ("approvals", "deny", WORKFLOW, "--json", "--key-file", str(tmp_path / "other.key"))
    assert pml(monkeypatch, *words) == 0
    assert gateway.keys[0].endswith("Bearer another")


def test_the_key_of_the_stack_here_goes_to_that_stack_alone(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _stack_at(tmp_path, gateway.url, monkeypatch)
    assert deciding_headers(gateway.url, None) == APPROVER
    assert deciding_headers(gateway.url.replace("127.0.0.1", "localhost"), None) == APPROVER
    for elsewhere in ("http://127.0.0.1:1", "http://10.0.0.1:8080", "http://127.0.0.1:x"):
        with pytest.raises(CommandError, match="needs its approver's key"):
            deciding_headers(elsewhere, None)


def test_without_a_key_nothing_is_sent_and_the_error_says_what_to_do(
    gateway: Gateway,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("PML_APPROVER_KEY_FILE")
    monkeypatch.setenv("PML_HOME", str(tmp_path / "nothing"))
    assert pml(monkeypatch, "approvals", "deny", WORKFLOW, "--json") == 1
    assert "--key-file" in capsys.readouterr().err
    monkeypatch.setenv("PML_APPROVER_KEY_FILE", str(tmp_path / "none.key"))
    assert pml(monkeypatch, "approvals", "deny", WORKFLOW, "--json") == 1
    assert "cannot be read" in capsys.readouterr().err
    assert gateway.keys == []
