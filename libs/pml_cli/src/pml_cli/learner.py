"""`pml learner`: stored runs, and what was learned from them."""

from pathlib import Path

from pml_cli.command_line import Group
from pml_cli.options import AS_JSON, KEY_FILE, URL, flag, number, one_of, option, word
from pml_cli.session import session

GROUP = Group()


@GROUP.command(
    option("--capability", "Id of a capability."),
    option("--intent", "The exact text of an intent."),
    option(
        "--order",
        "The newest or most surprising first.",
        default="newest",
        **one_of("newest", "priority"),
    ),
    option("--limit", default=20, **number(int, 1, 200)),
    URL,
    AS_JSON,
)
def traces(
    capability: str | None,
    intent: str | None,
    order: str,
    limit: int,
    url: str | None,
    as_json: bool,
) -> None:
    """List traces of runs."""
    from pml_cli.commands import tracing

    tracing.traces(*session(url, as_json=as_json), capability, intent, order, limit)


@GROUP.command(word("trace"), URL, AS_JSON)
def trace(trace: str, url: str | None, as_json: bool) -> None:
    """Show one trace by its id; `pml trace` shows those of a workflow."""
    from pml_cli.commands import tracing

    tracing.trace(*session(url, as_json=as_json), trace)


@GROUP.command(option("--capability", "Id of a capability."), KEY_FILE, URL, AS_JSON)
def rebuild(capability: str | None, key_file: Path | None, url: str | None, as_json: bool) -> None:
    """Recompute all learned values from the stored traces, while learning goes on; Ctrl-C cancels,
    and a repetition continues. For the approver."""
    from pml_cli.commands import rebuilding
    from pml_cli.credentials import deciding_headers

    client, out = session(url, as_json=as_json)
    rebuilding.rebuild(client, out, capability, deciding_headers(client.url, key_file))


@GROUP.command(
    word("principal"),
    flag("--admin", "As the admin, by the approver's key: of anybody."),
    KEY_FILE,
    flag("--yes", "Do not ask."),
    URL,
    AS_JSON,
    name="forget-principal",
)
def forget_principal(
    principal: str,
    admin: bool,
    key_file: Path | None,
    yes: bool,
    url: str | None,
    as_json: bool,
) -> int:
    """Delete the data of a principal: programs, results, calls, traces and opinions. Learned values
    stay."""
    from pml_cli.commands import tracing
    from pml_cli.credentials import deciding_headers

    client, out = session(url, as_json=as_json)
    if admin:
        client.authorise(deciding_headers(client.url, key_file))
    return tracing.forget_principal(client, out, principal, is_confirmed=yes)
