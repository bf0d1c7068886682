"""The demo's parts: its output, its checks, its workspace."""

import io
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest
from rich.console import Console

from libs.pml_cli.tests.support.fakes import APPROVER, Gateway
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_cli.client import Client
from pml_cli.demo.narrator import DemoFailed, Narrator
from pml_cli.demo.runs import Runner
from pml_cli.demo.session import Answer, Session, until
from pml_cli.demo.workspace import COMMIT, open_workspace
from pml_cli.errors import CommandError

WORKFLOW = "4d0b6fb2-acbc-5f0f-9660-00e28ec29407"
CAPABILITY = "bfde1ab3-3f21-5896-84dd-b846b27ca7e8"
ASKS: dict[str, object] = {
    "status": "approval_required",
    "workflow_id": WORKFLOW,
    "capability_id": CAPABILITY,
    "approval": {
        "reasons": ["fs:write_file may change things"],
        "tools": ["fs:write_file"],
        "expires_at": "2026-11-21T10:30:00Z",
    },
}
WROTE: dict[str, object] = {
    "status": "success",
    "workflow_id": WORKFLOW,
    "capability_id": CAPABILITY,
    "result": {"did": "written", "note": "visit-1/monday.md", "text": "Water the plants."},
}
STATE: dict[str, object] = {
    "status": "success",
    "structure": None,
    "executed_path": ["n1", "d1", "n3"],
    "decisions": [{"node_id": "d1", "outcome": "false"}],
    "duration_ms": 12.5,
}


@pytest.fixture
def narrator() -> Narrator:
    return Narrator(Console(file=io.StringIO(), width=100))


def told(narrator: Narrator) -> str:
    file = narrator.console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def runner(gateway: Gateway, narrator: Narrator) -> Runner:
    return Runner(Session(Client(gateway.url), APPROVER), narrator)


def script(gateway: Gateway, **answers: dict[str, object]) -> None:
    paths = {
        "execute": "POST /api/execute",
        "approval": f"POST /api/workflows/{WORKFLOW}/approval",
        "workflow": f"GET /api/workflows/{WORKFLOW}",
    }
    for name, answer in ({"execute": ASKS, "approval": WROTE, "workflow": STATE} | answers).items():
        gateway.answers[paths[name]] = (200, answer)


def test_checks_that_pass_are_printed_and_counted(narrator: Narrator) -> None:
    with narrator.step("A step"):
        narrator.check(True, "two and two are [four]")
    assert "1 A step" in told(narrator)
    assert "✓ two and two are [four]" in told(narrator)
    assert narrator.checks == 1


def test_a_failed_check_names_its_step_the_fact_and_the_actual_value(
    narrator: Narrator,
) -> None:
    with narrator.step("First"):
        pass
    with pytest.raises(DemoFailed) as failed, narrator.step("Second"):
        narrator.check(False, "nothing has run", "n1 was reached")
    assert str(failed.value) == (
        "step 2 (Second): the check failed that nothing has run: n1 was reached"
    )


def test_an_error_of_the_gateway_names_the_step_too(narrator: Narrator) -> None:
    def fail() -> NoReturn:
        raise CommandError("NATS does not answer")

    complaint = r"step 1 \(First\): NATS does not answer"
    with pytest.raises(DemoFailed, match=complaint), narrator.step("First"):
        fail()


def test_waiting_ends_with_an_answer_or_in_time() -> None:
    answers = iter((None, None, "here"))
    assert until(lambda: next(answers), "it is here", within=PATIENCE_S) == "here"
    with pytest.raises(
        DemoFailed, match=r"timed out after 0 s, waiting until it is here. It is late"
    ):
        until(lambda: None, "it is here", 0.0, lambda: "It is late")


def test_the_gateways_errors_about_servers_are_reported(gateway: Gateway) -> None:
    servers = [
        {"name": "fs", "state": "ready", "error": None},
        {"name": "git", "state": "failed", "error": "it is not there"},
    ]
    gateway.answers["GET /api/servers"] = (200, {"servers": servers})
    assert (
        Session(Client(gateway.url), APPROVER).server_errors() == "git is failed: it is not there"
    )


def test_a_run_is_requested_approved_and_inspected(gateway: Gateway, narrator: Narrator) -> None:
    script(gateway)
    run = runner(gateway, narrator)
    asked = run.request({"capability": "notes:ensure"})
    done = run.approve(asked, "by name", "written")
    assert [line for line, _ in gateway.asked] == [
        "POST /api/execute",
        f"POST /api/workflows/{WORKFLOW}/approval",
        f"GET /api/workflows/{WORKFLOW}",
    ]
    assert gateway.asked[1][1] == {"decision": "approve", "wait": True}
    assert done.path == ("n1", "d1", "n3")
    assert "n1 → d1 false → n3" in told(narrator)
    assert "✓ visit-1/monday.md was written" in told(narrator)


def test_a_run_without_approval_fails_the_demo(gateway: Gateway, narrator: Narrator) -> None:
    script(gateway, execute=WROTE)
    with pytest.raises(
        DemoFailed, match="expected a request for approval, but the gateway answered success"
    ):
        runner(gateway, narrator).request({"code": "1"})


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (
            {
                "status": "error",
                "workflow_id": WORKFLOW,
                "error": {"kind": "tool_error", "message": "disk full", "tool": "fs:write_file"},
            },
            r"ended with error \(tool_error in fs:write_file\): disk full",
        ),
        (WROTE | {"result": "done"}, "the program returned 'done'"),
        (
            WROTE | {"result": {"did": "read", "note": "visit-1/monday.md", "text": ""}},
            "monday.md was written: it was read",
        ),
        (WROTE | {"status": "finished"}, "the gateway's answer is not a valid Answer"),
    ],
)
def test_a_run_that_goes_another_way_fails_the_demo(
    gateway: Gateway, narrator: Narrator, answer: dict[str, object], complaint: str
) -> None:
    script(gateway, approval=answer)
    asked = Answer.model_validate(ASKS)
    with pytest.raises(DemoFailed, match=complaint):
        runner(gateway, narrator).approve(asked, "code", "written")


def test_the_workspace_is_a_repository_with_a_topic_for_each_visit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".gitconfig").write_text("[commit]\n  gpgsign = true\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / "a, b" / "workspace"
    first = open_workspace(folder)
    assert first.topic == "visit-1"
    log = subprocess.run(("git", "log", "--format=%s"), cwd=folder, capture_output=True, text=True)
    assert log.stdout == f"{COMMIT}\n"
    assert not first.note("monday").exists()
    assert open_workspace(folder).topic == "visit-2", "even if the first was cut short"


def test_a_missing_git_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DemoFailed, match="git is not on the PATH: install it"):
        open_workspace(tmp_path / "workspace")
    assert not (tmp_path / "workspace").exists()
