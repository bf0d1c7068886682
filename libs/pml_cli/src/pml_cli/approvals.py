"""`pml approvals`: decide on what waits for a person."""

from typing import TYPE_CHECKING

import typer

from pml_cli.options import Approval, AsJson, Reason, Url
from pml_cli.session import session

if TYPE_CHECKING:
    from pml_cli.commands.execution import Decision

approvals = typer.Typer(no_args_is_help=True, help="Decide on what waits for a person.")


@approvals.command("list")
def approvals_list(url: Url = None, as_json: AsJson = False) -> None:
    """What waits, and why."""
    from pml_cli.commands import execution

    with session(url, as_json=as_json) as (client, out):
        execution.list_approvals(client, out)


def _goes_on(decision: "Decision", meaning: str) -> None:
    """A decision after which there may be something to wait for."""

    @approvals.command(decision, help=meaning)
    def decide(
        workflow: str,
        wait: bool = False,
        approval: Approval = None,
        reason: Reason = None,
        url: Url = None,
        as_json: AsJson = False,
    ) -> None:
        _decide(decision, workflow, url, approval, reason, wait=wait, as_json=as_json)


def _ends(decision: "Decision", meaning: str) -> None:
    @approvals.command(decision, help=meaning)
    def decide(
        workflow: str,
        approval: Approval = None,
        reason: Reason = None,
        url: Url = None,
        as_json: AsJson = False,
    ) -> None:
        _decide(decision, workflow, url, approval, reason, wait=False, as_json=as_json)


_goes_on("approve", "Let a workflow run, or go on; --wait sees it through.")
_ends("deny", "Refuse; nothing of it runs, or nothing more.")
_goes_on("continue", "Let the next layer of a DAG run; --wait sees it through.")
_ends("abort", "End a DAG between two layers.")
_ends("replan", "Refuse, and have the agent send another program.")


def _decide(
    decision: "Decision",
    workflow: str,
    url: str | None,
    approval: str | None,
    reason: str | None,
    *,
    wait: bool,
    as_json: bool,
) -> None:
    from pml_cli.commands import execution

    with session(url, as_json=as_json) as (client, out):
        decided = execution.Decided(decision, wait, approval, reason)
        raise typer.Exit(execution.decide(client, out, workflow, decided))
