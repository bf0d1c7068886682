"""Messages of failed and interrupted runs: the cause once, and what continues."""

import signal
import threading
from collections.abc import Generator

import pytest

from libs.pml_cli.tests.support.fakes import Gateway, pml

WORKFLOW = "4d0b6fb2-acbc-5f0f-9660-00e28ec29407"


def test_an_error_with_one_cause_is_shown_once(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cause = {"message": "no tool", "line": 2, "column": 9, "source_line": "mcp.fs.nope()"}
    error = {**cause, "kind": "rejected", "diagnostics": [{**cause, "severity": "error"}]}
    answer = {"status": "error", "workflow_id": WORKFLOW, "error": error}
    gateway.answers["POST /api/execute"] = (200, answer)
    assert pml(monkeypatch, "execute", "--capability", "x:y") == 1
    out = capsys.readouterr().out
    assert out.startswith("rejected at line 2, column 9: no tool\n    mcp.fs.nope()\nworkflow")


def test_warnings_about_the_program_are_shown_with_its_result(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    warning = {"severity": "warning", "message": "Nothing waits for this call", "line": 1}
    answer = {
        "status": "success",
        "workflow_id": WORKFLOW,
        "result": 7,
        "warnings": [{**warning, "column": 3, "source_line": "main();"}],
    }
    gateway.answers["POST /api/execute"] = (200, answer)
    assert pml(monkeypatch, "execute", "--capability", "x:y") == 0
    out = capsys.readouterr().out
    assert out.endswith("7\n  1:3 warning: Nothing waits for this call\n    main();\n")


class _Interrupting(dict[str, tuple[int, object]]):
    """Simulates Ctrl-C while the answer is awaited."""

    def __getitem__(self, line: str) -> tuple[int, object]:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return 200, {"status": "success", "workflow_id": WORKFLOW}


@pytest.fixture
def ctrl_c() -> Generator[None]:
    """Handle SIGINT as at a terminal; background processes ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_an_interrupted_wait_reports_that_the_workflow_continues(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway.answers = _Interrupting()
    assert pml(monkeypatch, "execute", "--capability", "x:y") == 130
    said = capsys.readouterr()
    assert f"the workflow continues: {gateway.url}/api/workflows" in said.err
    assert said.out == ""


def test_the_command_to_decide_is_on_one_line(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    approval = {"id": "9cbab5b5-0c5b-5f0f-9660-00e28ec29407", "begun": True}
    answer = {"status": "approval_required", "workflow_id": WORKFLOW, "approval": approval}
    gateway.answers["POST /api/execute"] = (200, answer)
    monkeypatch.setenv("COLUMNS", "80")
    pml(monkeypatch, "execute", "--capability", "x:y")
    command = f"pml approvals approve {WORKFLOW} --approval {approval['id']}"
    assert command in [line.strip() for line in capsys.readouterr().out.splitlines()]
