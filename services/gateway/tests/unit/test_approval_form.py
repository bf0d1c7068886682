"""Forms for the user of an agent's client, and the decisions in their answers."""

from dataclasses import replace

import pytest

from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.structure import Argument, LiteralArgument, ObjectArgument
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api import approval_form
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.api.approval_form import (
    ApprovalForm,
    FormAnswer,
    can_show_forms,
    decide_of,
    form_of,
)
from pml_gateway.domain.api.errors import InvalidRequest
from pml_gateway.domain.workflow.events import Analyzed
from pml_gateway.domain.workflow.workflow import Workflow, advance
from services.gateway.tests.support.builders import (
    AT,
    READ,
    RULES,
    WRITE,
    analyzed,
    later,
    with_capability,
    workflow,
)
from services.gateway.tests.support.layered import parked_run
from services.gateway.tests.support.parked_runs import by_name, parked, parked_event
from services.gateway.tests.support.steps import after


def waiting(
    *,
    path: str = "/a",
    intent: str | None = "tidy",
    capability: bool = False,
    argument: Argument | None = None,
) -> Workflow:
    new = workflow(ExecuteRequest(code="ask", intent=intent))
    analysis = analyzed(new, "ask", (READ, WRITE))
    nodes = tuple(
        node.model_copy(update={"arguments": {"path": argument or LiteralArgument(value=path)}})
        for node in analysis.structure.nodes
    )
    structure = analysis.structure.model_copy(update={"nodes": nodes})
    shown = analysis.model_copy(update={"structure": structure})
    shown = with_capability(shown) if capability else shown
    return advance(new, Analyzed(shown, AT), RULES)[0]


def form(of: Workflow) -> ApprovalForm:
    made = form_of(of, later(1))
    assert made is not None
    return made


def test_a_form_shows_all_calls_with_their_arguments_and_why() -> None:
    of = waiting()
    made = form(of)
    lines = made.message.splitlines()
    assert lines[0] == "PML: the agent's program runs only if you approve."
    assert "What for, in the agent's words: tidy" in lines
    assert "Why you are asked: fs:write is for a person to decide" in lines
    at = lines.index("    ? n2 fs:write  (line 2, any number of times)")
    assert lines[at + 1] == '        path = "/a"  (literal)  ! absolute path'
    assert (
        lines[-1] == f"Workflow {of.workflow_id} of agent-7, open until 2026-11-21 10:30:00+00:00."
    )
    assert of.approval is not None
    assert made.asked.approval_id == of.approval.approval_id
    assert made.asked.expires_at == of.approval.expires_at
    assert made.asked.shown.whole


def test_calls_of_capabilities_are_shown() -> None:
    assert (
        "    ? n9 cap:fs:look  (line 9, any number of times)"
        in form(waiting(capability=True)).message
    )


def test_parts_of_arguments_are_shown_below_them() -> None:
    inner: dict[str, Argument] = {"to": LiteralArgument(value="mira")}
    of = waiting(argument=ObjectArgument(fields=inner))
    lines = form(of).message.splitlines()
    at = lines.index("        path = (an object)")
    assert lines[at + 1] == '            to = "mira"  (literal)'


def test_nothing_in_a_form_is_hidden_or_breaks_its_lines() -> None:
    made = form(waiting(path="a\n? n1 \u202e\x1b[2K", intent="x\nWhy: \u202ey"))
    assert "\u202e" not in made.message
    assert "\x1b" not in made.message
    assert "What for, in the agent's words: x\\x0aWhy: \\u202ey" in made.message
    assert all(
        line.startswith(("PML", "What", "Why", "All", "Work", "    ")) or not line
        for line in made.message.splitlines()
    )


def test_long_values_are_whole_where_they_fit_and_else_cut_visibly() -> None:
    whole = form(waiting(path="x" * 5000))
    assert "x" * 5000 in whole.message
    assert whole.asked.shown.whole
    cut = form(waiting(path="x" * 20_000))
    assert "(cut: 20,002 characters)" in cut.message
    assert not cut.asked.shown.whole
    assert len(cut.message) < approval_form.LONGEST_FORM


def test_what_does_not_fit_is_decided_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    of = waiting()
    monkeypatch.setattr(approval_form, "LONGEST_FORM", len(form(of).message) - 1)
    assert form_of(of, later(1)) is None


def test_there_is_a_form_only_while_an_approval_is_pending() -> None:
    of = waiting()
    assert of.approval is not None
    assert form_of(of, of.approval.expires_at) is None
    assert form_of(replace(of, state="running"), later(1)) is None
    assert form_of(workflow(), later(1)) is None


def test_a_parked_run_shows_the_calls_that_wait() -> None:
    new = workflow(ExecuteRequest(code="ask", intent=None))
    running, (command,) = after(new, Analyzed(by_name(new, "allow"), AT))
    assert isinstance(command, RunWorkflow)
    park = parked(command, {"path": "/a", "o": {"x": 1}})
    wanted = park.wanted.model_copy(update={"why": "path was to be /b"})
    park = park.model_copy(update={"wanted": wanted})
    stopped, _ = advance(running, parked_event(park, later(1)), RULES)
    lines = form(stopped).message.splitlines()
    assert lines[0] == "PML: the agent's run stopped and goes on only if you approve."
    assert "It waits at these calls:" in lines
    assert "        why: path was to be /b" in lines
    assert '        path = "/a"  (what the run gives it)  ! absolute path' in lines


def test_between_layers_the_results_of_the_layer_before_are_shown() -> None:
    now, _ = parked_run()
    lines = form(now).message.splitlines()
    at = lines.index("The layer before has ended, with:")
    assert lines[at + 2].startswith("    - read (fs:read) = {")
    assert "It waits at these calls:" in lines[at:]
    assert any("fs:write" in line for line in lines[at + 4 :])


def test_calls_that_only_the_run_shows_are_announced() -> None:
    new = workflow()
    of, _ = advance(new, Analyzed(by_name(new), AT), RULES)
    said = "    ? line 4: mcp.call(tool, {}), known when it runs: you are asked then"
    assert said in form(of).message


@pytest.mark.parametrize(
    ("answer", "decision", "reason"),
    [
        (FormAnswer("accept", {"decision": "approve"}), "approve", None),
        (FormAnswer("accept", {"decision": "deny", "reason": "no"}), "deny", "no"),
        (FormAnswer("accept", {"decision": "deny", "reason": ""}), "deny", None),
        (FormAnswer("decline"), "deny", None),
        (FormAnswer("decline", {"decision": "approve"}), "deny", None),
    ],
)
def test_an_answer_decides_the_approval_that_was_shown(
    answer: FormAnswer, decision: str, reason: str | None
) -> None:
    asked = form(waiting()).asked
    decide = decide_of(asked, answer)
    assert decide is not None
    assert (decide.decision, decide.reason) == (decision, reason)
    assert (decide.approval_id, decide.shown) == (asked.approval_id, asked.shown)


def test_a_dismissed_form_decides_nothing() -> None:
    asked = form(waiting()).asked
    assert decide_of(asked, FormAnswer("cancel", {"decision": "approve"})) is None


@pytest.mark.parametrize(
    ("content", "field"),
    [
        (None, "decision"),
        ({"decision": "yes"}, "decision"),
        ({"decision": True}, "decision"),
        ({"decision": "replan"}, "decision"),
        ({"decision": "approve", "reason": 3}, "reason"),
        ({"decision": "deny", "reason": "x" * 2001}, "reason"),
    ],
)
def test_an_answer_that_is_none_decides_nothing(content: JsonObject | None, field: str) -> None:
    with pytest.raises(InvalidRequest, match=f"{field} of the form .* nothing is decided"):
        decide_of(form(waiting()).asked, FormAnswer("accept", content))


@pytest.mark.parametrize(
    ("capabilities", "can"),
    [
        ({}, False),
        ({"elicitation": {}}, True),
        ({"elicitation": {"form": {}, "url": {}}}, True),
        ({"elicitation": {"url": {}}}, False),
        ({"elicitation": True}, False),
    ],
)
def test_forms_are_for_clients_that_show_them(capabilities: JsonObject, can: bool) -> None:
    assert can_show_forms(capabilities) is can
