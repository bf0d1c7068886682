"""The form on which the user of an agent's client decides an approval (MCP elicitation)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal
from uuid import UUID

from pydantic import ValidationError

from pml_common.contracts.structure import DynamicCall
from pml_common.contracts.tool import JsonObject
from pml_common.text.visible import visible
from pml_gateway.domain.api.api import DoneTask
from pml_gateway.domain.api.errors import InvalidRequest
from pml_gateway.domain.api.responses import approval_subject
from pml_gateway.domain.api.shown import shown_calls_of
from pml_gateway.domain.api.shown_arguments import ShownArgument
from pml_gateway.domain.api.shown_calls import ShownCall, ShownCalls, ShownToApprover
from pml_gateway.domain.api.shown_program import changed_program_of
from pml_gateway.domain.workflow import layers
from pml_gateway.domain.workflow.approval import Decide
from pml_gateway.domain.workflow.workflow import Approval, Workflow

LONGEST_FORM: Final = 16_000
"""Characters of the longest form: what is longer is not read in a dialog."""

_LONGEST_REASON: Final = 2000
_INDENT: Final = "    "
"""Also what Markdown takes for code: nothing in an argument is formatted."""

SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "decision": {
            "type": "string",
            "title": "Decision",
            "description": "approve: it runs. deny: it does not.",
            "enum": ["approve", "deny"],
        },
        "reason": {
            "type": "string",
            "title": "Reason",
            "description": "For the agent, if you deny.",
            "maxLength": _LONGEST_REASON,
        },
    },
    "required": ["decision"],
}
"""The fields of every form, as MCP restricts them. Nothing is chosen beforehand."""


@dataclass(frozen=True)
class AskedApproval:
    """The subject of a form: an approval, and the calls that it shows."""

    workflow_id: UUID
    approval_id: UUID
    shown: ShownToApprover
    expires_at: datetime


@dataclass(frozen=True)
class ApprovalForm:
    """The message of a form, and its subject."""

    asked: AskedApproval
    message: str


@dataclass(frozen=True)
class FormAnswer:
    """A user's answer to a form, as their client reports it."""

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, object] | None = None


@dataclass(frozen=True)
class GivenAnswer:
    """An answer and the subject of its form; None: the form was not answered."""

    asked: AskedApproval
    answer: FormAnswer | None


def form_of(workflow: Workflow, at: datetime) -> ApprovalForm | None:
    """Return the form for a workflow's pending approval. None where it waits for none, or where its
    calls and the program that was changed do not fit into a form: who does not see them all decides
    elsewhere."""
    approval = workflow.approval
    if approval is None or workflow.state != "awaiting_approval" or at >= approval.expires_at:
        return None
    brief = shown_calls_of(workflow, approval)
    message = "\n".join(_lines(workflow, approval, brief))
    if not brief.is_all or len(message) > LONGEST_FORM:
        return None
    is_whole = brief.is_whole
    if not is_whole:
        full = shown_calls_of(workflow, approval, whole=True)
        text = "\n".join(_lines(workflow, approval, full))
        if full.is_whole and len(text) <= LONGEST_FORM:
            message, is_whole = text, True
    shown = ShownToApprover(digest=brief.digest(), whole=is_whole)
    ids = workflow.workflow_id, approval.approval_id
    return ApprovalForm(AskedApproval(*ids, shown, approval.expires_at), message)


def decide_of(asked: AskedApproval, answer: FormAnswer) -> Decide | None:
    """Return the decision of an answer. None where the user dismissed the form; a user who declines
    it denies. Raises InvalidRequest."""
    if answer.action == "cancel":
        return None
    content = answer.content or {}
    decision = "deny" if answer.action == "decline" else content.get("decision")
    if decision not in ("approve", "deny"):
        raise InvalidRequest("decision", "of the form must be approve or deny: nothing is decided")
    fields = {
        "decision": decision,
        "approval_id": asked.approval_id,
        "shown": asked.shown,
        "reason": content.get("reason") or None,
    }
    try:
        return Decide.model_validate(fields)
    except ValidationError:
        fault = f"of the form must be a text of at most {_LONGEST_REASON} characters"
        raise InvalidRequest("reason", f"{fault}: nothing is decided") from None


def can_show_forms(capabilities: JsonObject) -> bool:
    """Whether a client with these capabilities shows forms; before there were two modes, every one
    with elicitation did."""
    modes = capabilities.get("elicitation")
    return isinstance(modes, dict) and ("form" in modes or "url" not in modes)


def _lines(workflow: Workflow, approval: Approval, shown: ShownCalls) -> Iterator[str]:
    subject, requested = approval_subject(workflow, approval), workflow.requested
    begun = approval.parked is not None
    yield (
        "PML: the agent's run stopped and goes on only if you approve."
        if begun
        else "PML: the agent's program runs only if you approve."
    )
    if requested.intent is not None:
        yield f"What for, in the agent's words: {visible(requested.intent)}"
    yield from (f"Why you are asked: {visible(reason)}" for reason in subject.reasons)
    yield from _program_lines(workflow)
    if (layer := layers.asked(workflow, approval.parked)) is not None:
        yield "The layer before has ended, with:"
        yield ""
        yield from (f"{_INDENT}- {visible(_done(task))}" for task in layer.done)
        yield ""
    yield "It waits at these calls:" if begun else "All its calls (? needs approval):"
    yield ""
    for call in shown.calls:
        yield from _call_lines(call)
    yield from (f"{_INDENT}? {_dynamic(call)}" for call in shown.dynamic)
    yield ""
    when = approval.expires_at.isoformat(sep=" ", timespec="seconds")
    yield f"Workflow {workflow.workflow_id} of {visible(requested.principal)}, open until {when}."


def _program_lines(workflow: Workflow) -> Iterator[str]:
    """Yield the text that runs, where it is another than the one that the agent's client shows."""
    changed = changed_program_of(workflow)
    if changed is None:
        return
    yield from (f"PML changed the program: {visible(notice)}" for notice in changed.notices)
    yield "What runs:"
    yield ""
    yield from (f"{_INDENT}{visible(line)}" for line in changed.code.splitlines())
    yield ""


def _done(task: DoneTask) -> str:
    return f"{task.task} ({task.tool}) = {task.preview}"


def _call_lines(call: ShownCall) -> Iterator[str]:
    mark = "?" if call.verdict == "ask" else "-"
    within = f" in {visible(call.within)}" if call.within else ""
    place = f"line {call.line}{within}, " if call.line is not None else ""
    yield f"{_INDENT}{mark} {call.node_id} {visible(call.tool)}  ({place}{call.how_often})"
    if call.why is not None:
        yield f"{_INDENT * 2}why: {visible(call.why)}"
    for argument in call.arguments:
        yield from _argument_lines(argument, _INDENT * 2)


def _argument_lines(argument: ShownArgument, indent: str) -> Iterator[str]:
    name = f"{argument.name} = " if argument.name else "or "
    text = "" if argument.text is None else f"{argument.text}  "
    marks = "".join(f"  ! {visible(mark)}" for mark in argument.marks)
    cut = "" if argument.cut is None else f"  (cut: {argument.cut.length:,} characters)"
    yield f"{indent}{name}{text}({argument.words}){marks}{cut}"
    for part in argument.parts:
        yield from _argument_lines(part, indent + _INDENT)


def _dynamic(call: DynamicCall) -> str:
    return f"line {call.line}: {visible(call.expression)}, known when it runs: you are asked then"
