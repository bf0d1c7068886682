"""`pml learner rebuild`: learning again from stored traces."""

from collections.abc import Mapping
from uuid import UUID

from pml_cli.client import Client, Json
from pml_cli.errors import USAGE, CommandError
from pml_cli.output import Output
from pml_common.contracts.learner import RebuildProgress


def rebuild(
    client: Client, out: Output, capability: str | None, approver: Mapping[str, str]
) -> None:
    """Rebuild part by part, and say how far it is. `approver` are the headers that authorise it."""
    total = RebuildProgress(rebuilt=0, changed=0, traces=0, missing=0, left=1)
    while total.left:
        body: Json = {"capability_id": _id(capability), "after": total.after and str(total.after)}
        answer = client.post("/api/learning/rebuild", body, approver)
        total = _sum(total, RebuildProgress.model_validate(answer))
        out.note(f"{total.rebuilt} rebuilt from {total.traces} traces, {total.left} left")
    lost = f"\n[yellow]{total.missing} traces are lost: what they taught stays[/]"
    out.show(
        total.model_dump(mode="json", exclude={"after", "left"}),
        f"{total.rebuilt} capabilities rebuilt from {total.traces} traces; "
        f"{total.changed} changed{lost if total.missing else ''}",
    )


def _sum(total: RebuildProgress, more: RebuildProgress) -> RebuildProgress:
    return RebuildProgress(
        rebuilt=total.rebuilt + more.rebuilt,
        changed=total.changed + more.changed,
        traces=total.traces + more.traces,
        missing=total.missing + more.missing,
        left=more.left,
        after=more.after,
    )


def _id(capability: str | None) -> str | None:
    if capability is None:
        return None
    try:
        return str(UUID(capability))
    except ValueError as error:
        raise CommandError(f"{capability!r} is not a capability's id (a UUID)", USAGE) from error
