"""Looking at what waits for a person, and deciding on it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Literal, cast

from rich.markup import escape

from pml_cli.client import Client, Json
from pml_cli.commands.execution import show_answer, workflow_id
from pml_cli.output import Output
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
        lines.append(f"[bold]{one['workflow_id']}[/]  [dim]until {one['expires_at']}[/]")
        if one.get("begun"):
            lines.append(f"  the run waits in its midst: --approval {one['approval_id']}")
        if one.get("intent"):
            lines.append(f"  {escape(str(one['intent']))}")
        reasons = cast(list[str], one.get("reasons") or [])
        lines += [f"  {escape(reason)}" for reason in reasons]
        lines += layer_lines(one)
        given = cast(Json, one.get("args") or {})
        lines += [f"  [dim]{escape(key)}[/] = {escape(short(given[key], 240))}" for key in given]
    out.show(answer, *(lines or ["[dim]nothing waits for approval[/]"]))


Decision = Literal["approve", "continue", "deny", "abort", "replan"]


@dataclass(frozen=True)
class Decided:
    """A person's decision, as it is sent; `wait` sees an approved workflow through."""

    decision: Decision
    wait: bool = False
    approval_id: str | None = None
    reason: str | None = None


def decide(
    client: Client, out: Output, workflow: str, decided: Decided, approver: Mapping[str, str]
) -> int:
    """Answer what a workflow waits for; `approver` are the headers that allow it."""
    path, wait = f"/api/workflows/{workflow_id(workflow)}/approval", decided.wait
    body = {key: value for key, value in asdict(decided).items() if value is not None}
    with out.busy("running…" if wait else "deciding…"):
        answer = client.post(path, body, approver)
    if wait:
        return show_answer(out, answer)
    out.show(answer, SAID[decided.decision])
    return 0
