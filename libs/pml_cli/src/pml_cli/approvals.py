"""`pml approvals`: list pending approvals and decide on them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pml_cli.options import Approval, AsJson, Full, KeyFile, Reason, Shown, Url
from pml_cli.session import session

if TYPE_CHECKING:
    from pml_cli.commands.deciding import Decided, Decision

approvals = typer.Typer(no_args_is_help=True, help="List pending approvals and decide on them.")


@approvals.command("list")
def approvals_list(url: Url = None, as_json: AsJson = False) -> None:
    """List pending approvals with their reasons."""
    from pml_cli.commands import deciding

    with session(url, as_json=as_json) as (client, out):
        deciding.list_approvals(client, out)


@approvals.command("show")
def approvals_show(
    workflow: str, full: Full = False, url: Url = None, as_json: AsJson = False
) -> None:
    """Show all calls of a pending approval, with every argument and its source."""
    from pml_cli.commands import deciding

    with session(url, as_json=as_json) as (client, out):
        deciding.show(client, out, workflow, full=full)


Covers = Annotated[
    Literal["call", "calls", "node"] | None,
    typer.Option(
        help="For a parked run: its first waiting call, all waiting calls (the default), or all "
        "further calls of their nodes."
    ),
]


def _continuing_decision(decision: "Decision", meaning: str) -> None:
    """Register a decision after which the workflow may continue."""

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


def _final_decision(decision: "Decision", meaning: str) -> None:
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


_continuing_decision("approve", "Let a workflow run or continue; --wait waits for its end.")
_final_decision("deny", "Refuse: the program does not run, or does not continue.")
_continuing_decision("continue", "Let the next layer of a DAG run; --wait waits for the end.")
_final_decision("abort", "End a DAG between two layers.")
_final_decision("replan", "Refuse, and ask the agent to send another program.")


@approvals.command("elicitation")
def approvals_elicitation(
    setting: Annotated[
        Literal["on", "off", "show"],
        typer.Argument(help="on: a form that the agent's client shows its user decides."),
    ] = "show",
    key_file: KeyFile = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Let users decide approvals in the agent's client (off by default), or show whether they may.

    The answers come over the agent's own connection, so turn it on only for clients that show the
    form to a person."""
    from pml_cli.commands import deciding
    from pml_cli.credentials import deciding_headers

    with session(url, as_json=as_json) as (client, out):
        if setting == "show":
            deciding.show_elicitation(client, out)
            return
        approver = deciding_headers(client.url, key_file)
        deciding.set_elicitation(client, out, approver, may_elicit=setting == "on")


def _decide(
    decided: "Decided", workflow: str, url: str | None, key_file: Path | None, *, as_json: bool
) -> None:
    from pml_cli.commands import deciding
    from pml_cli.credentials import deciding_headers

    with session(url, as_json=as_json) as (client, out):
        approver = deciding_headers(client.url, key_file)
        raise typer.Exit(deciding.decide(client, out, workflow, decided, approver))
