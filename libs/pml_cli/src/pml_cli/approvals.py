"""`pml approvals`: list pending approvals and decide on them."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pml_cli.command_line import Group
from pml_cli.options import (
    APPROVAL,
    AS_JSON,
    FULL,
    KEY_FILE,
    REASON,
    SHOWN,
    URL,
    one_of,
    option,
    switch,
    word,
)
from pml_cli.session import session

if TYPE_CHECKING:
    from pml_cli.commands.deciding import Covers, Decision

GROUP = Group()


@GROUP.command(URL, AS_JSON, name="list")
def list_(url: str | None, as_json: bool) -> None:
    """List pending approvals with their reasons."""
    from pml_cli.commands import deciding

    deciding.list_approvals(*session(url, as_json=as_json))


@GROUP.command(word("workflow"), FULL, URL, AS_JSON)
def show(workflow: str, full: bool, url: str | None, as_json: bool) -> None:
    """Show all calls of a pending approval, with every argument and its source."""
    from pml_cli.commands import deciding

    deciding.show(*session(url, as_json=as_json), workflow, full=full)


def _decide(
    decision: "Decision",
    *,
    workflow: str,
    approval: str | None,
    reason: str | None,
    key_file: Path | None,
    url: str | None,
    as_json: bool,
    wait: bool = False,
    covers: "Covers | None" = None,
    shown: str | None = None,
    full: bool = False,
) -> int:
    from pml_cli.commands import deciding
    from pml_cli.credentials import deciding_headers

    decided = deciding.Decided(decision, wait, approval, reason, covers, shown, full)
    client, out = session(url, as_json=as_json)
    approver = deciding_headers(client.url, key_file)
    return deciding.decide(client, out, workflow, decided, approver)


_COVERS = option(
    "--covers",
    "For a parked run: its first waiting call, all waiting calls (the default), or all further "
    "calls of their nodes.",
    **one_of("call", "calls", "node"),
)
_FINAL = (word("workflow"), APPROVAL, REASON, KEY_FILE, URL, AS_JSON)
_CONTINUING = (_FINAL[0], switch("--wait"), APPROVAL, _COVERS, SHOWN, FULL, *_FINAL[2:])
_DECISIONS: "dict[Decision, str]" = {
    "approve": "Let a workflow run or continue; --wait waits for its end.",
    "deny": "Refuse: the program does not run, or does not continue.",
    "continue": "Let the next layer of a DAG run; --wait waits for the end.",
    "abort": "End a DAG between two layers.",
    "replan": "Refuse, and ask the agent to send another program.",
}
for _decision, _meaning in _DECISIONS.items():
    _arguments = _CONTINUING if "--wait" in _meaning else _FINAL
    GROUP.add(_decision, _meaning, _arguments, partial(_decide, _decision))


@GROUP.command(
    word(
        "setting",
        "on: a form that the agent's client shows its user decides. [default: show]",
        nargs="?",
        default="show",
        **one_of("on", "off", "show"),
    ),
    KEY_FILE,
    URL,
    AS_JSON,
)
def elicitation(setting: str, key_file: Path | None, url: str | None, as_json: bool) -> None:
    """Let users decide approvals in the agent's client (off by default), or show whether they may.

    The answers come over the agent's own connection, so turn it on only for clients that show the
    form to a person."""
    from pml_cli.commands import deciding
    from pml_cli.credentials import deciding_headers

    client, out = session(url, as_json=as_json)
    if setting == "show":
        deciding.show_elicitation(client, out)
        return
    approver = deciding_headers(client.url, key_file)
    deciding.set_elicitation(client, out, approver, may_elicit=setting == "on")
