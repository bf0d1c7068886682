"""`pml approvals`: decide on what waits for a person."""

from typing import TYPE_CHECKING

import typer

from pml_cli.options import Approval, AsJson, Reason, Url
from pml_cli.session import session

if TYPE_CHECKING:
    from pml_cli.commands.execution import Decided

approvals = typer.Typer(no_args_is_help=True, help="Decide on what waits for a person.")


@approvals.command("list")
def approvals_list(url: Url = None, as_json: AsJson = False) -> None:
    """What waits, and why."""
    from pml_cli.commands import execution

    with session(url, as_json=as_json) as (client, out):
        execution.list_approvals(client, out)


@approvals.command("approve")
def approvals_approve(
    workflow: str,
    wait: bool = False,
    approval: Approval = None,
    reason: Reason = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Let a workflow run, or go on; --wait sees it through."""
    from pml_cli.commands.execution import Decided

    _decide(workflow, url, Decided("approve", wait, approval, reason), as_json=as_json)


@approvals.command("deny")
def approvals_deny(
    workflow: str,
    approval: Approval = None,
    reason: Reason = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Refuse; nothing of it runs, or nothing more."""
    from pml_cli.commands.execution import Decided

    _decide(workflow, url, Decided("deny", False, approval, reason), as_json=as_json)


@approvals.command("continue")
def approvals_continue(
    workflow: str,
    wait: bool = False,
    approval: Approval = None,
    reason: Reason = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Let the next layer of a DAG run; --wait sees it through."""
    from pml_cli.commands.execution import Decided

    _decide(workflow, url, Decided("continue", wait, approval, reason), as_json=as_json)


@approvals.command("abort")
def approvals_abort(
    workflow: str,
    approval: Approval = None,
    reason: Reason = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """End a DAG between two layers."""
    from pml_cli.commands.execution import Decided

    _decide(workflow, url, Decided("abort", False, approval, reason), as_json=as_json)


@approvals.command("replan")
def approvals_replan(
    workflow: str,
    approval: Approval = None,
    reason: Reason = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Refuse, and have the agent send another program."""
    from pml_cli.commands.execution import Decided

    _decide(workflow, url, Decided("replan", False, approval, reason), as_json=as_json)


def _decide(workflow: str, url: str | None, decided: "Decided", *, as_json: bool) -> None:
    from pml_cli.commands import execution

    with session(url, as_json=as_json) as (client, out):
        raise typer.Exit(execution.decide(client, out, workflow, decided))
