"""Parked runs: the request for approval, the decision, and the continued run."""

from dataclasses import replace

import pytest

from pml_common.binding.fit import ActualCall, Binding
from pml_common.contracts.decision import Policy, PolicyRule
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.gateway import ApprovalDecided, ApprovalRequested, WorkflowFinished
from pml_common.contracts.tool import JsonObject, args_hash
from pml_gateway.domain.api.mcp_results import tool_call_result
from pml_gateway.domain.api.responses import execute_response
from pml_gateway.domain.api.views import view_of
from pml_gateway.domain.workflow.events import Analyzed, Decided, Due, ToolVerdict
from pml_gateway.domain.workflow.parking import denied_calls, lines_of
from pml_gateway.domain.workflow.verdicts import Verdicts
from pml_gateway.domain.workflow.workflow import Workflow
from services.gateway.tests.support.builders import (
    AT,
    ELSEWHERE,
    TOOLS,
    VERDICTS,
    WRITE,
    finished,
    later,
    made,
    workflow,
)
from services.gateway.tests.support.parked_runs import ASKED, by_name, parked, parked_event
from services.gateway.tests.support.steps import after, approve

OTHER: JsonObject = {"path": "/b"}


def running() -> tuple[Workflow, RunWorkflow]:
    """Return an approved, running workflow and its command."""
    new = workflow()
    return with_command(*after(new, Analyzed(by_name(new), AT), approve(new)))


def with_command(now: Workflow, effects: tuple[object, ...]) -> tuple[Workflow, RunWorkflow]:
    assert now.state == "running"
    command = effects[-1]
    assert isinstance(command, RunWorkflow)
    return now, command


def parked_run() -> tuple[Workflow, RunWorkflow]:
    """Return the workflow once its run is parked, and its command."""
    now, command = running()
    now, _ = after(now, parked_event(parked(command, calls=[made(), made()]), later(5)))
    assert now.state == "awaiting_approval"
    return now, command


def answer(now: Workflow, seconds: float = 10, **more: object) -> Decided:
    assert now.approval is not None
    settled = Decided(now.approval.approval_id, "approved", "mira", later(seconds))
    return replace(settled, **more)  # pyright: ignore[reportArgumentType] - handed on


def test_approval_of_a_parked_call_is_requested_with_the_calls_made_before() -> None:
    now, command = running()
    before = now.approval
    fact = parked(command, calls=[made(), made()])
    now, (asked,) = after(now, parked_event(fact, later(5)))
    assert isinstance(asked, ApprovalRequested)
    assert (now.approval, before) != (before, None)
    assert now.approval is not None
    assert asked.approval_id == now.approval.approval_id
    assert asked.expires_at == later(3605) == now.due_at
    (tool,) = asked.decision.tools
    assert (tool.tool, tool.verdict, tool.node_ids) == ("fs:write", "ask", ("dyn:fs:write",))
    (reason,) = asked.decision.reasons
    assert "its call of fs:write on line 4" in reason
    assert "It has called fs:read (2 times)." in reason


def test_the_caller_is_shown_the_parked_call_and_those_before_it() -> None:
    now, _ = parked_run()
    told = execute_response(now, None)
    assert told.status == "approval_required"
    assert told.approval is not None
    assert told.approval.begun
    assert told.approval.tools == ("fs:write",)
    (wanted,) = told.approval.calls
    assert (wanted.node_id, wanted.line) == ("dyn:fs:write", 4)
    assert [(each.name, each.text) for each in wanted.arguments] == [("path", '"/a"')]
    assert [task.tool for task in told.tasks] == ["fs:read", "fs:read"]
    view = view_of(now)
    assert view.approval is not None
    assert view.approval.begun
    assert len(view.tasks) == 2
    text = str(tool_call_result(WRITE, told))
    assert "the run is parked" in text


def test_agreement_lets_the_very_call_pass_and_no_other() -> None:
    now, first = parked_run()
    now, command = with_command(*after(now, answer(now)))
    assert command.command_id != first.command_id
    assert command.grant.tools == first.grant.tools
    assert now.grant == command.grant
    binding = Binding(command.grant, {})
    wanted = parked(command).wanted
    made_as = ActualCall(wanted.node_id, 0, wanted.tool, wanted.args, wanted.args_hash)
    assert binding.mismatch(made_as, lambda _: ()) is None
    assert binding.definition_hash(made_as) == WRITE.definition_hash
    other = replace(made_as, args=OTHER, args_hash=args_hash(OTHER))
    assert "was not seen" in (binding.mismatch(other, lambda _: ()) or "")


def test_all_calls_that_wait_are_one_question() -> None:
    now, command = running()
    fact = parked(command)
    beside = fact.wanted.model_copy(
        update={"occurrence": 1, "args": OTHER, "args_hash": args_hash(OTHER)}
    )
    now, (asked,) = after(
        now, parked_event(fact.model_copy(update={"beside": (beside,)}), later(5))
    )
    assert isinstance(asked, ApprovalRequested)
    (reason,) = asked.decision.reasons
    assert "and 1 more calls wait beside it" in reason
    told = execute_response(now, None)
    assert told.approval is not None
    shown = [call.arguments[0].text for call in told.approval.calls]
    assert shown == ['"/a"', '"/b"']
    _, command = with_command(*after(now, answer(now)))
    assert [call.occurrence for call in command.grant.calls] == [0, 1]
    assert {call.definition_hash for call in command.grant.calls} == {WRITE.definition_hash}
    _, command = with_command(*after(now, answer(now, covers="node")))
    assert [rest.node_id for rest in command.grant.rest] == ["dyn:fs:write"]
    failed, _ = after(now, answer(now, outcome="denied"))
    assert failed.error is not None
    assert "denied its call of fs:write and 1 more" in failed.error.message


def test_what_the_policy_forbids_meanwhile_ends_the_run_at_its_approval() -> None:
    now, _ = parked_run()
    failed, (told, _) = after(now, answer(now, forbidden="fs:write: a rule denies it"))
    assert isinstance(told, ApprovalDecided)
    assert told.outcome == "approved"
    assert failed.error is not None
    assert failed.error.message.startswith(
        "the policy forbids it now: fs:write: a rule denies it. The run was parked there."
    )
    new = workflow()
    before = replace(approve(new), forbidden="fs:write: a rule denies it")
    failed, _ = after(new, Analyzed(by_name(new), AT), before)
    assert failed.error is not None
    assert failed.error.message == "The policy forbids it now: fs:write: a rule denies it"


def test_a_call_that_the_policy_denies_is_not_agreed_to() -> None:
    deny = Verdicts((Policy(rules=(PolicyRule(pattern="fs:write", verdict="deny"),)),), TOOLS)
    _, command = running()
    assert "fs:write: The rule" in (denied_calls(parked(command), deny) or "")
    assert denied_calls(parked(command), VERDICTS) is None
    assert denied_calls(None, deny) is None


def test_a_run_may_wait_again_and_keeps_what_was_agreed_to() -> None:
    now, _ = parked_run()
    now, second = with_command(*after(now, answer(now)))
    now, (asked,) = after(now, parked_event(parked(second, OTHER), later(20)))
    assert isinstance(asked, ApprovalRequested)
    now, third = with_command(*after(now, answer(now, 30)))
    assert third.grant.calls[0] == second.grant.calls[0]
    assert len(third.grant.calls) == 2
    again, (stirred,) = after(now, Due(later(300)))
    assert isinstance(stirred, RunWorkflow)
    assert (stirred.command_id, stirred.grant.calls) == (third.command_id, third.grant.calls)
    end, _ = after(again, finished(now, result=1))
    assert end.state == "succeeded"


def test_a_run_that_waits_is_asked_about_once_however_often_it_says_so() -> None:
    now, command = parked_run()
    assert after(now, parked_event(parked(command), later(9))) == (now, ())
    went_on, _ = after(now, answer(now))
    assert after(went_on, parked_event(parked(command), later(12))) == (went_on, ())
    elsewhere = parked(command).model_copy(update={"scope": ELSEWHERE})
    before, _ = running()
    assert after(before, parked_event(elsewhere, later(5))) == (before, ())


@pytest.mark.parametrize(
    ("change", "asked", "why"),
    [
        ({}, (None,), "fs:write is not there: no server lists it"),
        (
            {},
            (ToolVerdict("deny", "A rule.", "h"),),
            "the policy forbids this call of fs:write: A rule.",
        ),
        ({}, (ASKED, ASKED), "a tool is not there"),
        ({"grant_digest": "0" * 64}, (ASKED,), "a grant that is not its workflow's"),
    ],
)
def test_what_nobody_can_agree_to_ends_the_run(
    change: dict[str, object], asked: tuple[ToolVerdict | None, ...], why: str
) -> None:
    now, command = running()
    fact = parked(command).model_copy(update=change)
    failed, (end,) = after(now, parked_event(fact, later(5), *asked))
    assert isinstance(end, WorkflowFinished)
    assert failed.error is not None
    assert failed.error.kind == "denied"
    assert why in failed.error.message


def test_a_denial_ends_it_and_names_the_calls_made() -> None:
    now, _ = parked_run()
    failed, (told, _) = after(now, answer(now, outcome="denied", reason="too late"))
    assert isinstance(told, ApprovalDecided)
    assert told.outcome == "denied"
    assert failed.error == WorkflowError(
        kind="denied",
        message="mira denied its call of fs:write: too late. The run was parked there. It has "
        "called fs:read (2 times).",
        node_id="dyn:fs:write",
        line=4,
        tool="fs:write",
        arguments={"path": "/a"},
    )
    assert len(execute_response(failed, None).tasks) == 2


def test_an_agent_may_be_told_to_send_another_program() -> None:
    now, _ = parked_run()
    failed, _ = after(now, answer(now, outcome="denied", replan=True, reason="use fs:read"))
    assert failed.error is not None
    assert "wants another plan instead of its call of fs:write: use fs:read. Send another" in (
        failed.error.message
    )
    new = workflow()
    no = replace(approve(new), outcome="denied", replan=True)
    failed, _ = after(new, Analyzed(by_name(new), AT), no)
    assert failed.error is not None
    assert failed.error.message == "mira wants another plan instead of it. Send another program"
    assert execute_response(failed, None).tasks == ()


def test_nobody_deciding_in_time_ends_it_too() -> None:
    now, _ = parked_run()
    failed, (told, _) = after(now, Due(later(3605)))
    assert isinstance(told, ApprovalDecided)
    assert told.outcome == "expired"
    assert failed.error is not None
    assert "it was not approved in time" in failed.error.message
    assert "It has called" in failed.error.message


def test_where_a_call_stands_is_told_as_far_as_it_is_known() -> None:
    now, command = parked_run()
    wanted = parked(command).wanted
    assert lines_of(now, wanted) == [4]
    assert lines_of(now, wanted.model_copy(update={"line": 9})) == (9,)
    assert lines_of(replace(now, analysis=None), wanted) == []
    assert now.analysis is not None
    calls = now.analysis.dynamic_calls
    two = now.analysis.model_copy(
        update={"dynamic_calls": (*calls, calls[0].model_copy(update={"line": 7}))}
    )
    told = execute_response(replace(now, analysis=two), None)
    assert told.approval is not None
    assert "on line 4 or 7" in told.approval.reasons[0]
    assert told.approval.calls[0].line is None
    nowhere = execute_response(
        replace(now, analysis=two.model_copy(update={"dynamic_calls": ()})), None
    )
    assert nowhere.approval is not None
    assert " line " not in nowhere.approval.reasons[0]


def test_a_run_that_waits_without_a_grant_cannot_be_asked_about() -> None:
    now, command = running()
    failed, _ = after(replace(now, grant=None), parked_event(parked(command), later(5)))
    assert failed.state == "failed"
