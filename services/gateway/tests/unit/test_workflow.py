"""The state machine of a workflow, step by step."""

from dataclasses import replace

import pytest

from pml_common.contracts.decision import Decision
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.gateway import ApprovalDecided, ApprovalRequested, WorkflowFinished
from pml_common.contracts.structure import Diagnostic
from pml_common.signing import TrustedKeys
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.workflow.events import Analyzed, Due, NotAnalyzed
from pml_gateway.domain.workflow.run_end import workflow_finished
from services.gateway.tests.support.builders import (
    AT,
    ELSEWHERE,
    KEY,
    READ,
    WRITE,
    analyzed,
    finished,
    later,
    rejected,
    workflow,
)
from services.gateway.tests.support.steps import after, approve, asking


def test_what_is_allowed_runs_with_a_grant_for_its_tools() -> None:
    new = workflow(ExecuteRequest(code="return 1;", args={"n": 1}, timeout=7))
    workflow_event = Analyzed(
        analyzed(new),
        AT,
        repeatable_tools=("fs:read", "fs:gone"),
        read_only_tools=("fs:read", "fs:gone"),
    )
    running, effects = after(new, workflow_event)
    (command,) = effects
    assert isinstance(command, RunWorkflow)
    assert running.state == "running"
    assert running.due_at == later(7 + 60)
    assert (command.instrumented, command.insertions) == ("/**/return 1;", ((0, 4),))
    assert command.args == {"n": 1}
    assert command.timeout_s == 7
    assert command.repeatable_tools == command.read_only_tools == ("fs:read",)
    assert command.begins
    assert command.grant.tools == {"fs:read": READ.definition_hash}
    assert command.grant.approved_by is None
    assert running.grant == command.grant
    signed, by = command.grant.signed_bytes(), command.grant.kid
    assert TrustedKeys([KEY.public]).verify("gateway", by, signed, command.grant.signature)


def test_what_is_denied_ends_and_names_the_tool() -> None:
    new = workflow()
    failed, effects = after(new, Analyzed(analyzed(new, "deny", (WRITE,)), AT))
    (told,) = effects
    assert isinstance(told, WorkflowFinished)
    assert failed.state == "failed"
    assert told.error == failed.error
    assert failed.error is not None
    assert failed.error.kind == "denied"
    assert failed.error.tool == "fs:write"
    assert "fs:write is for a person to decide" in failed.error.message


def test_a_denial_without_tools_still_says_why() -> None:
    new, analysis = workflow(), analyzed(workflow(), "deny")
    bare = analyzed(new).model_copy(
        update={"decision": analysis.decision.model_copy(update={"tools": ()})}
    )
    failed, _ = after(new, Analyzed(bare, AT))
    assert failed.error is not None
    assert "fs:read is for a person" in failed.error.message
    silent = analyzed(new).model_copy(update={"decision": Decision(verdict="deny")})
    failed, _ = after(new, Analyzed(silent, AT))
    assert failed.error is not None
    assert failed.error.message == "the policy denies it"


def test_a_name_that_is_refused_ends_it_and_says_why() -> None:
    new = workflow(ExecuteRequest(code="return 1;", name="fs:count"))
    why = "fs:count of ada is other code: choose another name"
    failed, _ = after(new, Analyzed(analyzed(new, name="fs:count"), AT, name_refused=why))
    assert failed.error is not None
    assert (failed.error.kind, failed.error.message) == ("rejected", why)


def test_an_analysis_of_anything_else_is_not_taken() -> None:
    new = workflow(ExecuteRequest(code="return 1;"))
    right = analyzed(new)
    forged = (
        {"code": "return 2;"},
        {"principal": "mallory"},
        {"dry_run": True},
        {"capability": right.capability.model_copy(update={"name": "fs:mine"})},
    )
    for change in forged:
        assert after(new, Analyzed(right.model_copy(update=change), AT)) == (new, ())
    assert after(new, Analyzed(right, AT))[0].state == "running"


def test_a_program_that_cannot_be_read_ends_with_line_and_column() -> None:
    new = workflow()
    failed, effects = after(new, NotAnalyzed(rejected(new), AT))
    (told,) = effects
    assert isinstance(told, WorkflowFinished)
    assert told.error is not None
    assert (told.error.kind, told.error.line, told.error.column) == ("syntax", 2, 9)
    assert told.error.message == "expected )"
    assert told.capability_id is None
    assert failed.due_at is None


def test_of_many_diagnostics_the_first_error_is_told_and_all_are_kept() -> None:
    new = workflow()
    warning = Diagnostic(severity="warning", message="odd", line=1, column=1)
    error = Diagnostic(severity="error", message="bad", line=3, column=4)
    failed, _ = after(new, NotAnalyzed(rejected(new, warning, error), AT))
    assert failed.error is not None
    assert failed.error.message == "bad (and 1 more)"
    assert failed.error.diagnostics == (warning, error)
    failed, _ = after(new, NotAnalyzed(rejected(new, warning), AT))
    assert failed.error is not None
    assert failed.error.message == "odd"
    nothing = rejected(new).model_copy(update={"diagnostics": ()})
    failed, _ = after(new, NotAnalyzed(nothing, AT))
    assert failed.error is not None
    assert failed.error.message == "the program cannot run"


def test_what_must_be_asked_waits_and_nothing_runs() -> None:
    new = workflow()
    waiting, effects = after(new, asking(new))
    (asked,) = effects
    assert isinstance(asked, ApprovalRequested)
    assert waiting.state == "awaiting_approval"
    assert waiting.approval is not None
    assert asked.approval_id == waiting.approval.approval_id
    assert asked.expires_at == later(3600) == waiting.due_at


def test_an_approval_is_told_and_lets_it_run_in_the_name_of_who_gave_it() -> None:
    new = workflow()
    running, effects = after(new, asking(new), approve(new))
    told, command = effects
    assert isinstance(told, ApprovalDecided)
    assert isinstance(command, RunWorkflow)
    assert (told.outcome, told.decided_by) == ("approved", "mira")
    assert running.state == "running"
    assert command.grant.approved_by == "mira"
    assert set(command.grant.tools) == {"fs:read", "fs:write"}


def test_a_denial_is_told_and_ends_it_with_the_reason() -> None:
    new = workflow()
    no = replace(approve(new), outcome="denied", reason="not on a Friday")
    failed, effects = after(new, asking(new), no)
    told, end = effects
    assert isinstance(told, ApprovalDecided)
    assert isinstance(end, WorkflowFinished)
    assert told.outcome == "denied"
    assert failed.error is not None
    assert failed.error.message == "mira denied it: not on a Friday"
    unexplained, _ = after(new, asking(new), replace(no, reason=None))
    assert unexplained.error is not None
    assert unexplained.error.message == "mira denied it"


def test_nobody_deciding_in_time_ends_it() -> None:
    new = workflow()
    failed, effects = after(new, asking(new), Due(later(3600)))
    told, end = effects
    assert isinstance(told, ApprovalDecided)
    assert isinstance(end, WorkflowFinished)
    assert told.outcome == "expired"
    assert failed.error is not None
    assert failed.error.kind == "denied"


@pytest.mark.parametrize("seconds", [3600, 3601])
def test_a_decision_after_its_time_changes_nothing(seconds: float) -> None:
    new = workflow()
    waiting, _ = after(new, asking(new))
    assert after(waiting, approve(new, seconds)) == (waiting, ())


def test_a_decision_on_another_approval_changes_nothing() -> None:
    new = workflow()
    waiting, _ = after(new, asking(new))
    assert after(waiting, replace(approve(new), approval_id=ELSEWHERE_ID)) == (waiting, ())
    lost = replace(waiting, approval=None)
    assert after(lost, approve(new)) == (lost, ())
    unread = replace(waiting, analysis=None)
    assert after(unread, approve(new)) == (unread, ())


def test_a_run_ends_its_workflow_as_it_ended() -> None:
    new = workflow()
    end = finished(new, result=3)
    good, effects = after(new, Analyzed(analyzed(new), AT), end)
    told = workflow_finished(end)
    assert effects == ()
    assert (good.state, told.status, told.result) == ("succeeded", "success", 3)
    assert good.finished_at == told.finished_at == later(1)
    error = WorkflowError(kind="tool_error", message="disk full")
    end = finished(new, error=error)
    bad, effects = after(new, Analyzed(analyzed(new), AT), end)
    told = workflow_finished(end)
    assert effects == ()
    assert (bad.state, told.status, told.error) == ("failed", "error", error)


def test_what_happened_to_another_workflow_changes_nothing() -> None:
    new, other = workflow(), workflow(scope=ELSEWHERE)
    assert after(new, Analyzed(analyzed(other), AT)) == (new, ())
    assert after(new, NotAnalyzed(rejected(other), AT)) == (new, ())
    running, _ = after(new, Analyzed(analyzed(new), AT))
    assert after(running, finished(other)) == (running, ())


ELSEWHERE_ID = workflow(scope=ELSEWHERE).workflow_id
