"""Commands that run and cancel programs."""

from collections.abc import Mapping
from typing import cast
from uuid import UUID

from pml_cli.client import Client, Json
from pml_cli.errors import APPROVAL_REQUIRED, FAILED, STILL_RUNNING, USAGE, CommandError
from pml_cli.markup import escape
from pml_cli.output import Output
from pml_cli.render.calls import call_lines
from pml_cli.render.console import console_lines
from pml_cli.render.layers import layer_lines
from pml_cli.render.program import program_lines
from pml_cli.render.values import short

EXIT_CODES = {
    "success": 0,
    "suggestions": 0,
    "error": FAILED,
    "approval_required": APPROVAL_REQUIRED,
    "running": STILL_RUNNING,
}
DECISIONS_ON_CALLS = ("approve", "deny", "replan")
DECISIONS_ON_LAYERS = ("continue", "abort", "replan")


def execute(client: Client, out: Output, request: Mapping[str, object]) -> int:
    """Run a program or a capability; the exit code tells the status. Raises CommandError."""
    try:
        with out.busy("running…"):
            answer = client.post("/api/execute", request)
    except KeyboardInterrupt:
        out.note(f"interrupted; the workflow continues: {client.url}/api/workflows")
        raise
    return show_answer(out, answer)


def show_answer(out: Output, answer: Json) -> int:
    """Print an execute response; return its exit code."""
    status = str(answer["status"])
    match status:
        case "success":
            readable = [
                f"[green]success[/] {_workflow_line(answer)}",
                escape(_pretty(answer.get("result"))),
            ]
        case "error":
            readable = [_failure(cast(Json, answer["error"])), _workflow_line(answer)]
        case "approval_required":
            readable = _approval(answer)
        case "suggestions":
            readable = ["[yellow]suggestions[/]: `--json` shows them in full"]
        case _:
            readable = [f"still running: pml trace {answer['workflow_id']}"]
    readable[:0] = console_lines(answer)
    if answer.get("cached"):
        readable.insert(
            0, "[yellow]cached[/]: nothing ran; this is the result of the workflow named below"
        )
    if answer.get("joined"):
        readable.insert(0, "[yellow]joined[/] the workflow of an earlier, equal call")
    if answer.get("dry_run"):
        readable.insert(0, _dry_run_line(answer))
    for found in cast(list[Json], answer.get("warnings") or []):
        readable += _diagnostic(found)
    out.show(answer, *readable)
    out.remarks(cast(list[str], answer.get("notices") or []))
    return EXIT_CODES[status]


def _dry_run_line(answer: Json) -> str:
    tasks = cast(list[Json], answer.get("tasks") or [])
    mocked = [f"{task['tool']} ({task['id']})" for task in tasks if task.get("mocked")]
    return f"[yellow]dry run[/], not called: {escape(', '.join(mocked) or 'nothing')}"


def _workflow_line(answer: Json) -> str:
    name = answer.get("capability_name") or answer.get("capability_id")
    prefix = f"{escape(str(name))} · " if name else ""
    return f"[dim]{prefix}workflow {answer.get('workflow_id')}[/]"


def _pretty(value: object) -> str:
    return value if isinstance(value, str) else short(value, 4000)


def _failure(error: Json) -> str:
    column = f", column {error['column']}" if error.get("column") else ""
    place = f" at line {error['line']}{column}" if error.get("line") else ""
    node = f" in {error['node_id']}" if error.get("node_id") else ""
    tool = f" ({error['tool']})" if error.get("tool") else ""
    what = escape(f"{place}{node}{tool}: {error['message']}")
    lines = [f"[red]{escape(str(error['kind']))}[/]{what}"]
    for found in cast(list[Json], error.get("diagnostics") or []):
        if not _is_said(error, found):
            lines += _diagnostic(found)
        elif found.get("source_line"):
            lines.append(_source_line(found))
    return "\n".join(lines)


def _is_said(error: Json, found: Json) -> bool:
    """Whether a diagnostic is the error itself, whose message may count others behind it."""
    message = str(error["message"])
    said = message == found["message"] or message.startswith(f"{found['message']} (and ")
    return said and all(found[key] == error.get(key) for key in ("line", "column"))


def _diagnostic(found: Json) -> list[str]:
    place = f"  {found['line']}:{found['column']} {found['severity']}: "
    line = f"{place}{escape(str(found['message']))}"
    return [line, _source_line(found)] if found.get("source_line") else [line]


def _source_line(found: Json) -> str:
    return f"    [dim]{escape(str(found['source_line']))}[/]"


def _approval(answer: Json) -> list[str]:
    asked = cast(Json, answer.get("approval") or {})
    begun = asked.get("begun")
    state = "the run is parked" if begun else "nothing has run yet"
    lines = [f"[yellow]approval required[/]: {state}"]
    lines += [f"  {escape(str(reason))}" for reason in cast(list[str], asked.get("reasons") or [])]
    lines += program_lines({"code": asked.get("code")}, full=True)
    lines += layer_lines(asked)
    lines += call_lines(asked)
    if asked.get("more_calls"):
        lines.append(
            f"  {asked['more_calls']} more calls: pml approvals show {answer['workflow_id']}"
        )
    lines.append(f"until {escape(str(asked.get('expires_at')))}, review and decide with one of")
    lines.append(f"  [bold]pml approvals show {answer['workflow_id']}[/]")
    which = escape(f" --approval {asked.get('id')}") if begun else ""
    lines += [
        f"  [bold]pml approvals {word} {answer['workflow_id']}{which}[/]"
        for word in (DECISIONS_ON_LAYERS if asked.get("layer") else DECISIONS_ON_CALLS)
    ]
    return lines


def cancel(client: Client, out: Output, workflow: str, reason: str | None) -> int:
    """Cancel a workflow and wait for its end; 0 unless it had already ended otherwise."""
    body: dict[str, object] = {"wait": True}
    with out.busy("cancelling…"):
        answer = client.post(
            f"/api/workflows/{workflow_id(workflow)}/cancel",
            body if reason is None else body | {"reason": reason},
        )
    code, error = show_answer(out, answer), cast(Json, answer.get("error") or {})
    return 0 if error.get("kind") == "cancelled" else code


def delete(client: Client, out: Output, workflow: str) -> None:
    """Delete the data of a workflow. Raises CommandError."""
    which = workflow_id(workflow)
    client.delete(f"/api/workflows/{which}")
    out.show({"workflow_id": which, "deleted": True}, f"deleted the data of workflow {which}")


def workflow_id(text: str) -> str:
    """Validate a workflow's id. Raises CommandError."""
    try:
        return str(UUID(text))
    except ValueError as error:
        raise CommandError(f"{text!r} is not a workflow's id (a UUID)", USAGE) from error
