"""Commands that list and decide approvals."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, cast

from pml_cli.client import Client, Json
from pml_cli.commands.execution import show_answer, workflow_id
from pml_cli.markup import escape
from pml_cli.output import Output
from pml_cli.render.calls import call_lines
from pml_cli.render.layers import layer_lines
from pml_cli.render.program import program_lines
from pml_cli.render.values import short

CONFIRMATIONS = {
    "approve": "approved",
    "continue": "continues",
    "deny": "denied",
    "abort": "aborted",
    "replan": "sent back for another program",
}


def list_approvals(client: Client, out: Output) -> None:
    """List pending approvals; each workflow id is on its own line, never cut, so that it can be
    copied."""
    answer = client.get("/api/approvals")
    lines: list[str] = []
    for one in cast(list[Json], answer["approvals"]):
        lines.append(
            f"[bold]{one['workflow_id']}[/]  [dim]until {escape(str(one['expires_at']))}[/]"
        )
        lines += _approval_lines(one)
    out.show(answer, *(lines or ["[dim]no pending approvals[/]"]))


def show(client: Client, out: Output, workflow: str, *, full: bool) -> None:
    """Show a workflow's approval with all calls and arguments; `full` shows values uncut."""
    approval = _approval(client, workflow, full=full)
    outcome = approval.get("outcome")
    state = "pending" if outcome is None else f"{outcome} by {_decider(approval)}"
    lines = [
        f"[bold]{approval['workflow_id']}[/]  [dim]{escape(state)}[/]",
        *_approval_lines(approval, full=full),
    ]
    lines.append(f"  [dim]shown[/] {approval['shown_digest']}")
    out.show(approval, *lines)


def _decider(approval: Json) -> str:
    """Say who decided, and in which client, where that came without the approver's key."""
    by, through = str(approval.get("decided_by")), approval.get("decided_through")
    if not isinstance(through, Mapping):
        return by
    known = cast(Json, through)
    names = (known.get("client"), known.get("client_version"))
    client = " ".join(str(name) for name in names if name) or "a client without a name"
    return f"{by}, by a form in {client}"


_ELICITATION = "/api/approvals/elicitation"


def show_elicitation(client: Client, out: Output) -> None:
    """Show whether forms in the agent's client decide approvals."""
    _say_elicitation(out, client.get(_ELICITATION))


def set_elicitation(
    client: Client, out: Output, approver: Mapping[str, str], *, may_elicit: bool
) -> None:
    """Set whether forms in the agent's client decide approvals; `approver` are the headers that
    authorise it."""
    _say_elicitation(out, client.post(_ELICITATION, {"may_elicit": may_elicit}, approver))


def _say_elicitation(out: Output, answer: Json) -> None:
    state = "on" if answer["may_elicit"] else "off"
    by = answer.get("set_by")
    since = "" if by is None else f", set by {by} at {answer['set_at']}"
    out.show(answer, f"elicitation of {escape(str(answer['principal']))}: {state}{escape(since)}")


def _approval(client: Client, workflow: str, *, full: bool) -> Json:
    path = f"/api/workflows/{workflow_id(workflow)}/approval"
    return client.get(path, whole="true" if full else "false")


def _approval_lines(one: Json, *, full: bool = False) -> list[str]:
    lines: list[str] = []
    if one.get("begun"):
        lines.append(f"  the run is parked: --approval {escape(str(one['approval_id']))}")
    if one.get("intent"):
        lines.append(f"  {escape(str(one['intent']))}")
    lines += [f"  {escape(reason)}" for reason in cast(Sequence[str], one.get("reasons") or ())]
    lines += program_lines(one, full=full)
    lines += layer_lines(one)
    lines += call_lines(one)
    given = cast(Json, one.get("args") or {})
    lines += [f"  [dim]{escape(key)}[/] = {escape(short(given[key], 240))}" for key in given]
    return lines


Decision = Literal["approve", "continue", "deny", "abort", "replan"]
Covers = Literal["call", "calls", "node"]


class Decided(NamedTuple):
    """A person's decision. `wait` waits for the workflow's end; `shown` is the digest of what the
    person reviewed earlier, else the approval is shown now, uncut with `full`."""

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
    """Decide a workflow's approval; `approver` are the headers that authorise it. A person who
    agrees is shown the approval first, and the gateway refuses if it has changed since."""
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
    out.show(answer, CONFIRMATIONS[decided.decision])
    return 0


def _shown(client: Client, out: Output, workflow: str, decided: Decided) -> Json | None:
    """The digest of the approval that the person reviewed, earlier or now. None for refusals and
    with JSON on stdout, where nothing is shown."""
    if decided.shown is not None:
        return {"digest": decided.shown, "whole": decided.full}
    if out.as_json or decided.decision not in ("approve", "continue"):
        return None
    approval = _approval(client, workflow, full=decided.full)
    if approval.get("outcome") is not None:
        return None
    for line in _approval_lines(approval, full=decided.full):
        out.remark(line)
    return {"digest": approval["shown_digest"], "whole": approval["whole"]}
