"""`pml approvals`: decide on what waits for a person."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from pml_cli.options import Approval, AsJson, KeyFile, Reason, Url
from pml_cli.session import session

if TYPE_CHECKING:
    from pml_cli.commands.deciding import Decision

approvals = typer.Typer(no_args_is_help=True, help="Decide on what waits for a person.")


@approvals.command("list")
def approvals_list(url: Url = None, as_json: AsJson = False) -> None:
    """What waits, and why."""
    from pml_cli.commands import deciding

    with session(url, as_json=as_json) as (client, out):
        deciding.list_approvals(client, out)


def _goes_on(decision: "Decision", meaning: str) -> None:
    """A decision after which there may be something to wait for."""

    @approvals.command(decision, help=meaning)
    def decide(
        workflow: str,
        wait: bool = False,
        approval: Approval = None,
        reason: Reason = None,
        key_file: KeyFile = None,
        url: Url = None,
        as_json: AsJson = False,
    ) -> None:
        _decide(decision, workflow, url, key_file, approval, reason, wait=wait, as_json=as_json)


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
        _decide(decision, workflow, url, key_file, approval, reason, wait=False, as_json=as_json)


_goes_on("approve", "Let a workflow run, or go on; --wait sees it through.")
_ends("deny", "Refuse; nothing of it runs, or nothing more.")
_goes_on("continue", "Let the next layer of a DAG run; --wait sees it through.")
_ends("abort", "End a DAG between two layers.")
_ends("replan", "Refuse, and have the agent send another program.")


def _decide(
    decision: "Decision",
    workflow: str,
    url: str | None,
    key_file: Path | None,
    approval: str | None,
    reason: str | None,
    *,
    wait: bool,
    as_json: bool,
) -> None:
    from pml_cli.commands import deciding
    from pml_cli.credentials import deciding_headers

    with session(url, as_json=as_json) as (client, out):
        approver = deciding_headers(client.url, key_file)
        decided = deciding.Decided(decision, wait, approval, reason)
        raise typer.Exit(deciding.decide(client, out, workflow, decided, approver))
