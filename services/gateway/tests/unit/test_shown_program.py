"""Programs in approvals: the text that runs, and what was changed in the one that was sent."""

import json
from typing import Any, cast

import pytest

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.api.approval_form import LONGEST_FORM, form_of
from pml_gateway.domain.api.mcp_results import LONGEST_APPROVAL, execute_result
from pml_gateway.domain.api.responses import execute_response
from pml_gateway.domain.api.shown_program import LONGEST_CODE, cut, cut_to_json, program_of
from pml_gateway.domain.api.views import ApprovalView, approval_of
from pml_gateway.domain.workflow.events import Analyzed
from pml_gateway.domain.workflow.workflow import Approval, Workflow
from services.gateway.tests.support.builders import AT, WRITE, analyzed, later, workflow
from services.gateway.tests.support.steps import after

NOTICES = (
    "The Markdown fence round the program was taken off, with the prose beside it: send the code "
    "alone.",
    "The program was a function that nobody called: it was called with args. Send the body of an "
    "async function: statements that end with return.",
)
SENT = "```ts\nasync () => { ask }\n```"
RUNS = "return await (async () => { ask })(args)"


def changed(code: str = RUNS, sent: str = SENT) -> Workflow:
    """A workflow that waits for an approval of a program that was changed."""
    new = workflow(ExecuteRequest(code=sent, intent=None))
    found = {"code": code, "submitted_code": sent, "notices": NOTICES}
    return waiting(new, analyzed(new, "ask", (WRITE,)).model_copy(update=found))


def waiting(new: Workflow, analysis: ExecutionAnalyzed) -> Workflow:
    return after(new, Analyzed(analysis, AT))[0]


def view(of: Workflow, *, whole: bool) -> ApprovalView:
    return approval_of(of, cast(Approval, of.approval), whole=whole)


def over_mcp(of: Workflow) -> tuple[JsonObject, str]:
    """Return the pending approval in an answer over MCP, and the text of the answer."""
    result = cast(dict[str, Any], execute_result(execute_response(of, None)))
    return result["structuredContent"]["approval"], result["content"][0]["text"]


def test_the_view_has_the_text_that_runs_and_what_was_changed() -> None:
    for whole in (True, False):
        shown = view(changed(), whole=whole)
        assert (shown.code, shown.notices) == (RUNS, NOTICES)


def test_a_program_that_runs_as_it_was_sent_is_shown_without_notices() -> None:
    new = workflow(ExecuteRequest(code="ask", intent=None))
    of = waiting(new, analyzed(new, "ask", (WRITE,)))
    assert (view(of, whole=True).code, view(of, whole=True).notices) == (new.requested.code, ())
    approval, text = over_mcp(of)
    assert "code" not in approval
    assert '"notices"' not in text
    form = form_of(of, later(1))
    assert form is not None
    assert "What runs:" not in form.message
    assert program_of(new) is None


def test_a_long_program_is_whole_in_the_approval_and_cut_in_lists() -> None:
    code = "x" * (LONGEST_CODE + 1)
    assert view(changed(code), whole=True).code == code
    shown = view(changed(code), whole=False).code
    assert shown == f"{'x' * LONGEST_CODE}\n…(4,001 characters in all)"
    assert cut("x", 1) == "x"


def test_an_answer_has_the_text_that_runs_and_its_notices() -> None:
    response = execute_response(changed(), None)
    assert response.approval is not None
    assert (response.approval.code, response.notices) == (RUNS, NOTICES)
    assert json.loads(response.to_json())["approval"]["code"] == RUNS


@pytest.mark.parametrize("code", [RUNS, "y" * 5000, "é\n" * 3000, '"\\' * 3000])
def test_over_mcp_an_answer_about_one_call_stays_short(code: str) -> None:
    approval, text = over_mcp(changed(code))
    assert len(text) <= LONGEST_APPROVAL
    assert "The Markdown fence round the program was taken off, with…" in text
    assert "The program was a function that nobody called: it was…" in text
    assert approval.keys() == {"code", "reasons", "calls"}
    shown = str(approval["code"])
    assert code.startswith(shown.removesuffix("…"))
    assert shown == code or (len(json.dumps(shown)) > 150 and shown.endswith("…"))


def test_a_program_is_cut_to_its_room_or_left_out() -> None:
    assert cut_to_json("abc", 5) == "abc"
    assert cut_to_json("a" * 100, 40) == f"{'a' * 37}…"
    assert cut_to_json("a" * 100, 3) is None
    assert cut_to_json("a" * 100, -5) is None


def test_a_form_has_the_text_that_runs() -> None:
    form = form_of(changed("return 1;\n\u202ereturn 2;"), later(1))
    assert form is not None
    lines = form.message.splitlines()
    assert f"PML changed the program: {NOTICES[0]}" in lines
    at = lines.index("What runs:")
    assert lines[at : at + 5] == ["What runs:", "", "    return 1;", "    \\u202ereturn 2;", ""]


def test_a_changed_program_that_does_not_fit_into_a_form_is_decided_elsewhere() -> None:
    assert form_of(changed("x" * LONGEST_FORM), later(1)) is None
