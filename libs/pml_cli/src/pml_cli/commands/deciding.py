"""Looking at what waits for a person, and deciding on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from rich.markup import escape

from pml_cli.client import Client, Json
from pml_cli.commands.execution import show_answer, workflow_id
from pml_cli.output import Output
from pml_cli.render.calls import call_lines
from pml_cli.render.layers import layer_lines
from pml_cli.render.values import short

SAID = {
    "approve": "approved",
    "continue": "goes on",
    "deny": "denied",
    "abort": "aborted",
    "replan": "sent back for another plan",
}


def list_approvals(client: Client, out: Output) -> None:
    """What waits for a person: the workflow's id whole on its own line, to be copied."""
    answer = client.get("/api/approvals")
    lines: list[str] = []
    for one in cast(list[Json], answer["approvals"]):
        lines.append(
            f"[bold]{one['workflow_id']}[/]  [dim]until {escape(str(one['expires_at']))}[/]"
        )
        lines += _question(one)
    out.show(answer, *(lines or ["[dim]nothing waits for approval[/]"]))


def show(client: Client, out: Output, workflow: str, *, full: bool) -> None:
    """What one workflow waits for, all calls with all arguments; `full` with whole values."""
    approval = _approval(client, workflow, full=full)
    outcome = approval.get("outcome")
    stands = "waits" if outcome is None else f"{outcome} by {approval.get('decided_by')}"
    lines = [f"[bold]{approval['workflow_id']}[/]  [dim]{escape(stands)}[/]", *_question(approval)]
    lines.append(f"  [dim]shown[/] {approval['shown_digest']}")
    out.show(approval, *lines)


def _approval(client: Client, workflow: str, *, full: bool) -> Json:
    path = f"/api/workflows/{workflow_id(workflow)}/approval"
    return client.get(path, whole="true" if full else "false")


def _question(one: Json) -> list[str]:
    lines: list[str] = []
    if one.get("begun"):
        lines.append(f"  the run waits in its midst: --approval {escape(str(one['approval_id']))}")
    if one.get("intent"):
        lines.append(f"  {escape(str(one['intent']))}")
    lines += [f"  {escape(reason)}" for reason in cast(Sequence[str], one.get("reasons") or ())]
    lines += layer_lines(one)
    lines += call_lines(one)
    given = cast(Json, one.get("args") or {})
    lines += [f"  [dim]{escape(key)}[/] = {escape(short(given[key], 240))}" for key in given]
    return lines


Decision = Literal["approve", "continue", "deny", "abort", "replan"]
Covers = Literal["call", "calls", "node"]


@dataclass(frozen=True)
class Decided:
    """A person's decision. `wait` sees an approved workflow through; `shown` is the digest of what
    they looked at, else it is shown now, `full` with whole values."""

    decision: Decision
    wait: bool = False
    approval_id: str | None = None
    reason: str | None = None
    covers: Covers | None = None
    shown: str | None = None
    full: bool = False


def decide(
    client: Client, out: Output, workflow: str, decided: Decided, approver: Mapping[str, str]
) -> int:
    """Answer what a workflow waits for; `approver` are the headers that allow it. Who agrees is
    shown what to, and the gateway refuses where something else stands by then."""
    path, wait = f"/api/workflows/{workflow_id(workflow)}/approval", decided.wait
    fields: dict[str, object] = {
        "decision": decided.decision,
        "wait": wait,
        "approval_id": decided.approval_id,
        "reason": decided.reason,
        "covers": decided.covers,
        "shown": _shown(client, out, workflow, decided),
    }
    body = {name: value for name, value in fields.items() if value is not None}
    with out.busy("running…" if wait else "deciding…"):
        answer = client.post(path, body, approver)
    if wait:
        return show_answer(out, answer)
    out.show(answer, SAID[decided.decision])
    return 0


def _shown(client: Client, out: Output, workflow: str, decided: Decided) -> Json | None:
    """What the decision is about, as its maker saw it: earlier, or now. With JSON on stdout nobody
    is shown anything, and who says no need not look."""
    if decided.shown is not None:
        return {"digest": decided.shown, "whole": decided.full}
    if out.as_json or decided.decision not in ("approve", "continue"):
        return None
    approval = _approval(client, workflow, full=decided.full)
    if approval.get("outcome") is not None:
        return None
    for line in _question(approval):
        out.notes.print(line, soft_wrap=True)
    return {"digest": approval["shown_digest"], "whole": approval["whole"]}
