"""`pml approvals`: decide on what waits for a person."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pml_cli.options import Approval, AsJson, Full, KeyFile, Reason, Shown, Url
from pml_cli.session import session

if TYPE_CHECKING:
    from pml_cli.commands.deciding import Decided, Decision

approvals = typer.Typer(no_args_is_help=True, help="Decide on what waits for a person.")


@approvals.command("list")
def approvals_list(url: Url = None, as_json: AsJson = False) -> None:
    """What waits, and why."""
    from pml_cli.commands import deciding

    with session(url, as_json=as_json) as (client, out):
        deciding.list_approvals(client, out)


@approvals.command("show")
def approvals_show(
    workflow: str, full: Full = False, url: Url = None, as_json: AsJson = False
) -> None:
    """All calls of what waits, every argument and where it comes from."""
    from pml_cli.commands import deciding

    with session(url, as_json=as_json) as (client, out):
        deciding.show(client, out, workflow, full=full)


Covers = Annotated[
    Literal["call", "calls", "node"] | None,
    typer.Option(
        help="Of a run that waits: its first call, all calls that wait (the default), or all "
        "further calls of their nodes."
    ),
]


def _goes_on(decision: "Decision", meaning: str) -> None:
    """A decision after which there may be something to wait for."""

    @approvals.command(decision, help=meaning)
    def decide(
        workflow: str,
        wait: bool = False,
        approval: Approval = None,
        covers: Covers = None,
        shown: Shown = None,
        full: Full = False,
        reason: Reason = None,
        key_file: KeyFile = None,
        url: Url = None,
        as_json: AsJson = False,
    ) -> None:
        from pml_cli.commands.deciding import Decided

        decided = Decided(decision, wait, approval, reason, covers, shown, full)
        _decide(decided, workflow, url, key_file, as_json=as_json)


def _ends(decision: "Decision", meaning: str) -> None:
    @approvals.command(decision, help=meaning)
    def decide(
        workflow: str,
        approval: Approval = None,
        reason: Reason = None,
        key_file: KeyFile = None,
        url: Url = None,
        as_json: AsJson = False,
    ) -> None:
        from pml_cli.commands.deciding import Decided

        decided = Decided(decision, approval_id=approval, reason=reason)
        _decide(decided, workflow, url, key_file, as_json=as_json)


_goes_on("approve", "Let a workflow run, or go on; --wait sees it through.")
_ends("deny", "Refuse; nothing of it runs, or nothing more.")
_goes_on("continue", "Let the next layer of a DAG run; --wait sees it through.")
_ends("abort", "End a DAG between two layers.")
_ends("replan", "Refuse, and have the agent send another program.")


def _decide(
    decided: "Decided", workflow: str, url: str | None, key_file: Path | None, *, as_json: bool
) -> None:
    from pml_cli.commands import deciding
    from pml_cli.credentials import deciding_headers

    with session(url, as_json=as_json) as (client, out):
        approver = deciding_headers(client.url, key_file)
        raise typer.Exit(deciding.decide(client, out, workflow, decided, approver))
