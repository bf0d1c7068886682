"""MCP tool results: structured content for programs, and text for the model."""

import json
from textwrap import shorten
from typing import Final, cast

from pydantic import JsonValue, alias_generators

from pml_common.contracts.dns import RecordPage, RecordSummary
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.structure import Diagnostic
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_gateway.domain.api.api import ApprovalAsked, Detail, ExecuteResponse
from pml_gateway.domain.api.mcp_tools import has_structured_result
from pml_gateway.domain.api.shown_calls import ShownCall
from pml_gateway.domain.api.shown_program import cut_to_json
from pml_gateway.domain.tool_calls.tool_result import (
    Answered,
    answered_result,
    error_result,
    not_a_result,
    result_of,
    text_of,
    with_blocks_taken_out,
)

LONGEST_APPROVAL: Final = 1_200
"""Characters of the text of an answer about one call that waits for approval."""

_LONGEST_NOTICE: Final = 60
_LINES_SAID: Final = 20
_TOOLS_SAID: Final = 3
_FORMS: Final = {'"': "a string", "{": "an object", "[": "a list"}
"""Forms of a value by the first character of its JSON."""
NOTICES: Final = "pml/notices"
"""Key in `_meta` of a capability's result: what its caller should change."""

_SHOWN_OF_RECORDS: Final = {
    "name",
    "version",
    "version_tag",
    "description",
    "tags",
    "created_at",
    "health",
    "last_good",
}
_APPROVERS_OWN: Final = {"shown_digest", "whole_at", "tools"}
"""Fields of a pending approval that agents have no use for; the calls name the tools."""
_SAID_BY_NEXT: Final = {"id", "expires_at"}
"""Fields of a pending approval that the way on has, too."""
_LEFT_OUT: Final = {"approval", "capability_id", "capability_name", "notices"}
"""Fields that an answer about a changed program has no room for, or has in other words."""
_MCP_NAMES: Final = {
    name: alias_generators.to_camel(name)
    for name in (
        *("capability_id", "capability_name", "dry_run", "logs_omitted", "workflow_id"),
        *("expires_at", "more_calls"),
    )
}
"""Fields of responses and approvals whose names are in camel case over MCP."""


def execute_result(response: ExecuteResponse, detail: Detail = "calls") -> JsonObject:
    """Build the result of `pml_execute`: the response, and on failure a readable reason. Images and
    other data in the program's result are blocks of their own behind that."""
    blocks: list[JsonValue] = []
    whole = _whole(response.brief(detail))
    if "result" in whole:
        whole["result"] = with_blocks_taken_out(whole["result"], blocks)
    if response.status != "error":
        text = text_of(whole, compact=_is_changed(response))
        result: JsonObject = {"content": [text, *blocks], "isError": False}
        return {**result, "structuredContent": whole}
    return error_result(f"{_reason(response)}{_console(response)}", whole)


def cancel_result(response: ExecuteResponse) -> JsonObject:
    """Build the result of `pml_cancel`: an error only where the workflow did not end as cancelled
    and does not run."""
    if response.error is not None and response.error.kind == "cancelled":
        return result_of(_whole(response.brief()), structured=True)
    return execute_result(response)


def tool_call_result(tool: ToolDefinition, answer: ToolOutcome | ExecuteResponse) -> JsonObject:
    """Build the result of an upstream tool: its own result, or the reason why there is none. An
    ExecuteResponse means that the call was made by a program."""
    return answer_result(tool.tool_id, answer, structured=has_structured_result(tool))


def answer_result(
    tool_id: str, answer: ToolOutcome | ExecuteResponse, *, structured: bool
) -> JsonObject:
    """Build the result of a call: the tool's own result, or the reason why there is none. What a
    server asks for, or its error, is returned as it is."""
    if isinstance(answer, Answered):
        whole = answer.answer
        return whole if not_a_result(whole) else answered_result(whole)
    if isinstance(answer, ToolOutcome):
        if answer.status == "ok":
            return result_of(answer.result, structured=structured)
        return error_result(answer.message or answer.status)
    if answer.status == "success":
        result = result_of(answer.result, structured=structured)
        return {**result, "_meta": {NOTICES: list(answer.notices)}} if answer.notices else result
    way_on = f"\n{answer.next.text}" if answer.next is not None else ""
    return error_result(f"{tool_id}: {_reason(answer)}{way_on}", _whole(answer.brief()))


def listed_capabilities(page: RecordPage) -> JsonObject:
    """Build the result of `pml_list_capabilities`. Agents call by name: no fully qualified ones.
    `counts` says of what runs and success rates are."""
    listed: list[JsonValue] = [_capability(record) for record in page.records]
    found: JsonObject = {"capabilities": listed, "total": page.total, "counts": "version"}
    if page.next_cursor is not None:
        found["next_cursor"] = page.next_cursor
    return result_of(found, structured=True)


def _capability(record: RecordSummary) -> JsonObject:
    shown = record.model_dump(
        mode="json",
        include=_SHOWN_OF_RECORDS,
        exclude_none=True,
    )
    usage = record.usage
    return {
        **shown,
        "runs": usage.count,
        "success_rate": round(usage.rate, 3),
        "caller_faults": usage.caller_faults,
        "environment_faults": usage.environment_faults,
    }


def _whole(response: ExecuteResponse) -> JsonObject:
    whole = response.model_dump(mode="json", by_alias=True, include=response.model_fields_set)
    approval = response.approval
    if approval is None:
        return in_camel_case(whole)
    if not _is_changed(response):
        asked = approval.model_dump(mode="json", exclude_defaults=True, exclude=_APPROVERS_OWN)
        return in_camel_case({**whole, "approval": in_camel_case(asked)})
    return _with_program(approval, whole)


def _is_changed(response: ExecuteResponse) -> bool:
    """Whether a program waits for approval that was changed before its analysis."""
    return response.approval is not None and response.approval.code is not None


def _with_program(approval: ApprovalAsked, whole: JsonObject) -> JsonObject:
    """Build the answer about a program that was changed: it has the text that runs, as far as there
    is room, in place of what `next` says too. The notices are cut; the last answer has them whole.
    """
    left_out = _APPROVERS_OWN | _SAID_BY_NEXT | {"code"}
    asked = approval.model_dump(mode="json", exclude_defaults=True, exclude=left_out)
    kept = {name: value for name, value in whole.items() if name not in _LEFT_OUT}
    notices: list[JsonValue] = [
        shorten(str(each), _LONGEST_NOTICE, placeholder="…")
        for each in cast(list[JsonValue], whole.get("notices", []))
    ]
    answer: JsonObject = in_camel_case({**kept, "notices": notices})

    def with_code(code: str | None) -> JsonObject:
        shown: JsonObject = asked if code is None else {"code": code, **asked}
        return {**answer, "approval": in_camel_case(shown)}

    empty = with_code("")
    text = json.dumps(empty, ensure_ascii=False, separators=(",", ":"))
    room = LONGEST_APPROVAL - len(text) + len('""')
    return with_code(cut_to_json(approval.code or "", room))


def in_camel_case(fields: JsonObject) -> JsonObject:
    """Rename fields as they are called over MCP."""
    return {_MCP_NAMES.get(name, name): value for name, value in fields.items()}


def _reason(response: ExecuteResponse) -> str:
    workflow = f" (workflow {response.workflow_id})" if response.workflow_id else ""
    if response.approval is not None:
        reasons = " ".join(response.approval.reasons)
        state = "the run is parked" if response.approval.begun else "not run yet"
        asked = f"{state}: a person must approve it first{workflow}. {reasons}"
        lines = [asked, *map(_call_line, response.approval.calls)]
        if response.approval.more_calls:
            lines.append(f"and {response.approval.more_calls} more calls")
        return "\n".join(lines)
    if response.error is None:
        return f"{response.status}{workflow}"
    told = dict.fromkeys(map(repr, response.error.diagnostics))
    warnings = {repr(each): each for each in response.warnings if repr(each) not in told}
    warned = "".join(f"\n{line}" for each in warnings.values() for line in _lines(each))
    noted = "".join(f"\nnotice: {each}" for each in dict.fromkeys(response.notices))
    gave = "".join(f"\n{line}" for line in _gave(response))
    return f"{_description_of(response.error)}{workflow}{gave}{warned}{noted}"


def _call_line(call: ShownCall) -> str:
    given = ", ".join(f"{one.name} = {one.text or one.words}" for one in call.arguments)
    return f"{call.tool}({given})"


def _gave(response: ExecuteResponse) -> list[str]:
    """Return what the last tools gave to a program that failed by itself, most often because it
    expected another form."""
    if response.error is None or response.error.kind != "user_error":
        return []
    last = {task.tool: task.preview for task in response.tasks if task.success}
    return [
        f"{tool} gave {_FORMS.get(preview[:1], 'a value')}: {preview}"
        for tool, preview in [*last.items()][-_TOOLS_SAID:]
    ]


def _console(response: ExecuteResponse) -> str:
    """Return the last lines that the program wrote, for the model that is to mend it."""
    said = response.logs[-_LINES_SAID:]
    before = response.logs_omitted + len(response.logs) - len(said)
    head = f"\nconsole, after {before:,} earlier lines:" if before else "\nconsole:"
    lines = [f"  {line.level}: {line.message}" for line in said]
    return "\n".join([head, *lines]) if lines else ""


def _description_of(error: WorkflowError) -> str:
    lines = [f"{error.kind}: {error.message}"]
    if error.tool is not None:
        lines.append(f"tool {error.tool}, called with {json.dumps(error.arguments)}")
    if error.line is not None:
        lines.append(f"at line {error.line}, column {error.column}")
    for each in {repr(one): one for one in error.diagnostics}.values():
        lines += _lines(each)[1:] if _is_said(error, each) else _lines(each)
    return "\n".join(lines)


def _is_said(error: WorkflowError, each: Diagnostic) -> bool:
    """Whether a diagnostic is the error itself, whose message may count others behind it."""
    said = error.message == each.message or error.message.startswith(f"{each.message} (and ")
    return said and (error.line, error.column) == (each.line, each.column)


def _lines(each: Diagnostic) -> list[str]:
    line = f"{each.severity} at line {each.line}, column {each.column}: {each.message}"
    return [line, f"    {each.source_line}"] if each.source_line else [line]
