"""Responses to the callers of workflows: REST's views and the execute response."""

import json
from dataclasses import replace
from typing import cast
from uuid import UUID

from pml_common.contracts.error import WorkflowError
from pml_common.contracts.structure import Diagnostic
from pml_common.contracts.trace import LogLine, TaskResult
from pml_gateway.domain.api.next_step import until_approved
from pml_gateway.domain.api.responses import approval_asked, execute_response, tasks_of
from pml_gateway.domain.api.shown_calls import shown_calls_of_program
from pml_gateway.domain.api.views import approval_of, summary_of, view_of
from pml_gateway.domain.workflow.events import Analyzed, NotAnalyzed
from pml_gateway.domain.workflow.workflow import Approval, Workflow
from services.gateway.tests.support import steps
from services.gateway.tests.support.builders import (
    AT,
    READ,
    VERDICTS,
    WRITE,
    analyzed,
    finished,
    later,
    made,
    rejected,
    unfenced,
    with_capability,
    workflow,
)
from services.gateway.tests.support.steps import Cause

Json = dict[str, object]
NEW = workflow()
RESULT = {"workflow_id": str(NEW.workflow_id), "wait_s": 30}


def after(*causes: Cause) -> Workflow:
    return steps.after(NEW, *causes)[0]


RUNNING = after(Analyzed(analyzed(NEW), AT))


def response_of(of: Workflow, name: str | None = None) -> dict[str, object]:
    return json.loads(execute_response(of, name).to_json())


def test_an_unfinished_workflow_is_running() -> None:
    answer = response_of(NEW)
    way_on = cast(Json, answer.pop("next"))
    assert answer == {"status": "running", "workflow_id": str(NEW.workflow_id)}
    assert way_on.keys() == {"message", "call"}
    assert way_on["call"] == {"tool": "pml_get_task_result", "arguments": RESULT}
    assert response_of(RUNNING, "fs:look") == {
        "status": "running",
        "workflow_id": str(NEW.workflow_id),
        "next": way_on,
        "capability_id": str(analyzed(NEW).capability.capability_id),
        "capability_name": "fs:look",
    }


def test_what_the_analysis_doubts_is_part_of_the_answer() -> None:
    doubt = Diagnostic(severity="warning", message="main() is not awaited", line=1, column=1)
    analysis = analyzed(NEW).model_copy(update={"diagnostics": (doubt,)})
    (shown,) = cast(list[Json], response_of(after(Analyzed(analysis, AT)))["warnings"])
    assert (shown["severity"], shown["message"]) == ("warning", "main() is not awaited")


def test_a_pending_approval_says_how_the_agent_and_the_person_go_on() -> None:
    way_on = cast(Json, response_of(after(Analyzed(analyzed(NEW, "ask"), AT)))["next"])
    workflow_id = str(NEW.workflow_id)
    assert way_on["call"] == {"tool": "pml_get_task_result", "arguments": RESULT}
    assert way_on["person"] == {
        "review": f"pml approvals show {workflow_id}",
        "approve": f"pml approvals approve {workflow_id}",
        "deny": f"pml approvals deny {workflow_id}",
    }
    assert "before 2026-11-21 10:30 UTC" in str(way_on["message"])


def test_a_decision_on_a_parked_run_names_its_approval_and_that_on_a_layer_continues() -> None:
    asked = until_approved(UUID(int=7), AT, UUID(int=8), is_layer=False).person
    layer = until_approved(UUID(int=7), AT, UUID(int=8), is_layer=True).person
    assert asked is not None
    assert layer is not None
    assert asked.approve == f"pml approvals approve {UUID(int=7)} --approval {UUID(int=8)}"
    assert layer.approve == f"pml approvals continue {UUID(int=7)} --approval {UUID(int=8)}"
    assert layer.deny == f"pml approvals abort {UUID(int=7)} --approval {UUID(int=8)}"


def test_a_success_has_its_result_and_tasks_in_the_order_they_began() -> None:
    calls = [
        made(node_id="n2", result={"a": "é" * 300}, started_at=2),
        made(node_id="n1", result="short", started_at=1),
    ]
    answer = response_of(after(Analyzed(analyzed(NEW), AT), finished(NEW, calls=calls)))
    assert (answer["status"], answer["result"]) == ("success", None)
    first, second = tasks_of(finished(NEW, calls=calls))
    assert (first.id, first.preview) == ("n1.0", "short")
    assert len(second.preview) == 240
    assert second.preview.endswith("…")


def test_an_answer_counts_the_calls_and_has_those_that_matter() -> None:
    fault = WorkflowError(kind="tool_error", message="gone")
    write = made("fs:write", node_id="n2", started_at=98).model_copy(update={"duration_ms": 500.0})
    reads = [made(started_at=n).model_copy(update={"occurrence": n}) for n in range(98)]
    calls = [*reads, write, made(node_id="n3", started_at=99, error=fault)]
    asked = Analyzed(analyzed(NEW, "ask", (READ, WRITE)), AT, verdicts=VERDICTS)
    agreed = replace(steps.approve(NEW), verdicts=VERDICTS)
    whole = execute_response(after(asked, agreed, finished(NEW, calls=calls)), None)
    assert whole.calls is not None
    assert (whole.calls.made, whole.calls.failed) == (100, 1)
    assert whole.calls.by_tool == {"fs:read": 99, "fs:write": 1}
    assert whole.calls.slowest is not None
    assert whole.calls.slowest.id == "n2.0"
    assert [task.id for task in whole.brief().tasks] == ["n2.0", "n3.0"]
    assert len(whole.brief("tasks").tasks) == 100
    assert len(whole.brief().to_json()) < 1200


def test_without_a_person_only_failed_and_mocked_calls_are_told_one_by_one() -> None:
    calls = [made(), made(node_id="n2").model_copy(update={"mocked": True})]
    run = finished(NEW, calls=calls)
    answer = execute_response(after(Analyzed(analyzed(NEW), AT), run), None)
    assert [task.id for task in answer.brief().tasks] == ["n2.0"]
    nothing = execute_response(after(Analyzed(analyzed(NEW), AT), finished(NEW)), None)
    assert nothing.calls is not None
    assert (nothing.calls.made, nothing.calls.slowest) == (0, None)


def test_a_failed_run_is_an_error_with_its_tasks() -> None:
    error = WorkflowError(kind="tool_error", message="disk full", node_id="n1", tool="fs:read")
    run = finished(NEW, error=error, calls=[made(error=error)])
    answer = response_of(after(Analyzed(analyzed(NEW), AT), run))
    assert answer["status"] == "error"
    assert answer["error"] == json.loads(error.model_dump_json())
    assert [task.preview for task in tasks_of(run)] == ["disk full"]
    assert [task.preview for task in tasks_of(finished(NEW, calls=[_mute()]))] == [""]


def _mute() -> TaskResult:
    return made().model_copy(update={"success": False})


def test_a_workflow_that_failed_without_a_run_gives_the_reason() -> None:
    answer = response_of(after(NotAnalyzed(rejected(NEW), AT)))
    assert answer["status"] == "error"
    assert "result" not in answer
    assert "tasks" not in answer


def test_a_pending_approval_tells_what_would_run_and_why() -> None:
    waiting = after(Analyzed(analyzed(NEW, "ask", (READ, WRITE)), AT))
    answer = response_of(waiting)
    assert answer["status"] == "approval_required"
    asked = approval_asked(waiting, waiting.approval or Approval(NEW.workflow_id, AT, AT))
    assert answer["approval"] == json.loads(asked.model_dump_json())
    assert asked.tools == ("fs:read", "fs:write")
    assert [(each.node_id, each.line) for each in asked.calls] == [("n1", 1), ("n2", 2)]
    assert set(json.loads(asked.model_dump_json())) == {
        "id",
        "reasons",
        "tools",
        "calls",
        "more_calls",
        "shown_digest",
        "whole_at",
        "begun",
        "layer",
        "expires_at",
    }


def test_calls_of_capabilities_need_approval_for_what_they_reach_or_for_their_names() -> None:
    through = with_capability(analyzed(NEW, "ask", (WRITE,)))
    by_name = with_capability(analyzed(NEW, "allow", (WRITE,)), "ask")
    for analysis, own in ((through, "ask"), (by_name, "allow")):
        calls = shown_calls_of_program(analysis, {}, whole=False).calls
        assert [(each.node_id, each.tool, each.verdict) for each in calls] == [
            ("n1", "fs:write", own),
            ("n9", "cap:fs:look", "ask"),
        ]


def test_a_view_has_all_known_details() -> None:
    new = view_of(NEW)
    assert (new.status, new.structure, new.decision, new.analysis) == ("running", None, None, None)
    assert (new.tasks, new.result, new.approval, new.duration_ms) == ((), None, None, None)
    ended = after(Analyzed(analyzed(NEW), AT), finished(NEW, result=[1]))
    view = view_of(ended)
    assert (view.status, view.result, view.finished_at) == ("success", [1], later(1))
    assert view.structure == analyzed(NEW).structure
    assert view.analysis is not None
    assert view.analysis.code_hash == analyzed(NEW).capability.code_hash
    assert view.analysis.capabilities == ()
    assert view.executed_path == ("n1",)
    assert summary_of(ended).model_dump() == {
        key: value
        for key, value in view.model_dump().items()
        if key in summary_of(NEW).model_dump()
    }


def test_an_approval_is_shown_with_its_subject() -> None:
    waiting = after(Analyzed(analyzed(NEW, "ask", (WRITE,)), AT))
    shown = view_of(waiting).approval
    assert shown is not None
    assert shown.tools == ("fs:write",)
    assert shown.expires_at == later(3600)
    approval = Approval(NEW.workflow_id, AT, AT)
    bare = approval_of(replace(waiting, analysis=None), approval)
    assert (bare.tools, bare.calls, bare.reasons) == ((), (), ())
    unread = approval_asked(replace(waiting, analysis=None), approval)
    assert (unread.tools, unread.calls, unread.reasons) == ((), (), ())


def test_what_a_program_wrote_to_its_console_is_in_every_answer_after_its_run() -> None:
    written = (LogLine(level="warn", message="no notes"),)
    expected = [{"level": "warn", "message": "no notes"}]
    error = WorkflowError(kind="user_error", message="stop")
    for run in (finished(NEW, result=1), finished(NEW, error=error)):
        ended = after(
            Analyzed(analyzed(NEW), AT),
            run.model_copy(update={"logs": written, "logs_omitted": 2}),
        )
        answer = response_of(ended)
        assert (answer["logs"], answer["logs_omitted"]) == (expected, 2)
        assert (view_of(ended).logs, view_of(ended).logs_omitted) == (written, 2)
    silent = response_of(after(Analyzed(analyzed(NEW), AT), finished(NEW)))
    assert not {"logs", "logs_omitted"} & silent.keys()


def test_what_was_changed_in_a_program_is_a_notice_in_every_state() -> None:
    found = analyzed(NEW).model_copy(update=unfenced(NEW.requested.code))
    for state in (after(Analyzed(found, AT)), after(Analyzed(found, AT), finished(NEW))):
        assert response_of(state)["notices"] == ["The fence was taken off."]
    assert "notices" not in response_of(RUNNING)


def test_what_is_not_to_be_repeated_is_the_first_notice() -> None:
    found = analyzed(NEW).model_copy(update=unfenced(NEW.requested.code))
    notices = ("Do not repeat the program.", "a: result was NaN: it became null")
    void = finished(NEW).model_copy(update={"void": True, "notices": notices})
    ended = after(Analyzed(found, AT), void)
    answer, told = response_of(ended), [notices[0], "The fence was taken off.", notices[1]]
    assert (answer["status"], answer["result"]) == ("success", None)
    assert answer["notices"] == [*view_of(ended).notices] == told
    assert view_of(NEW).notices == ()
