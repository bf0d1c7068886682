"""`pml learner traces` and `trace`: traces of runs."""

import sys
from typing import cast
from urllib.parse import quote
from uuid import UUID

from rich.table import Column, Table

from pml_cli.asking import confirm
from pml_cli.client import Client, Json
from pml_cli.errors import USAGE, CommandError
from pml_cli.markup import escape
from pml_cli.output import Output
from pml_cli.render.trace import trace_tree
from pml_cli.render.values import milliseconds, short
from pml_common.contracts.learner import ExecutionTrace


def traces(
    client: Client,
    out: Output,
    capability: str | None,
    intent: str | None,
    order: str,
    limit: int,
) -> None:
    """Traces of a capability, of an intent or of all, the newest or most surprising first."""
    of_capability = None if capability is None else _id(capability, "a capability's id")
    answer = client.get(
        "/api/traces", capability_id=of_capability, intent=intent, order=order, limit=limit
    )
    table = Table(Column("trace", no_wrap=True), "priority", "end", "took", "intent", box=None)
    for one in cast(list[Json], answer["traces"]):
        trace = ExecutionTrace.model_validate(one)
        said = trace.intent or f"capability {trace.name or trace.capability_id}"
        table.add_row(
            str(trace.trace_id),
            f"{trace.priority:.2f}",
            "success" if trace.success else "error",
            milliseconds(trace.duration_ms),
            escape(short(said, 70)),
        )
    out.show(answer, table if answer["traces"] else "[dim]no traces[/]")


def trace(client: Client, out: Output, wanted: str) -> None:
    """One trace with its path and calls."""
    found = client.get(f"/api/trace/{_id(wanted, 'the id of a trace')}")
    out.show(found, trace_tree([ExecutionTrace.model_validate(found)]))


def forget_principal(client: Client, out: Output, principal: str, *, is_confirmed: bool) -> int:
    """Delete a principal's data, part by part; 1 where some workflows have not ended. Raises
    CommandError."""
    if not is_confirmed:
        _confirm(principal)
    path = f"/api/principals/{quote(principal, safe='')}"
    deleted, left, cursor = 0, list[str](), None
    with out.busy("deleting…"):
        while True:
            part = client.delete_part(path, cursor=cursor)
            deleted += cast(int, part["deleted"])
            left += cast(list[str], part["not_ended"])
            cursor = cast("str | None", part.get("next_cursor"))
            if cursor is None:
                break
    said = [f"deleted the data of {escape(principal)}: {deleted} workflows, traces and opinions"]
    said += [f"workflow {each} has not ended: cancel it, then delete again" for each in left]
    out.show({"principal": principal, "deleted": deleted, "not_ended": left}, *said)
    return 1 if left else 0


def _confirm(principal: str) -> None:
    if not sys.stdin.isatty():
        raise CommandError(f"say --yes to delete the data of {principal!r}", USAGE)
    question = f"Delete all data of {principal!r}? It cannot be brought back."
    if not confirm(question):
        raise CommandError("nothing was deleted", USAGE)


def _id(text: str, meaning: str) -> str:
    try:
        return str(UUID(text))
    except ValueError as error:
        raise CommandError(f"{text!r} is not {meaning} (a UUID)", USAGE) from error
