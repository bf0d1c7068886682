"""`pml learner`: stored runs, and what was learned from them."""

from typing import Annotated, Literal

import typer

from pml_cli.options import AsJson, KeyFile, Url
from pml_cli.session import session

learner = typer.Typer(
    no_args_is_help=True, help="Read and delete what was recorded of runs, learn from it again."
)


@learner.callback()
def main() -> None:
    """Read and delete what was recorded of runs, learn from it again."""


@learner.command("traces")
def learner_traces(
    capability: Annotated[str | None, typer.Option(help="Id of a capability.")] = None,
    intent: Annotated[str | None, typer.Option(help="The exact text of an intent.")] = None,
    order: Annotated[
        Literal["newest", "priority"], typer.Option(help="The newest or most surprising first.")
    ] = "newest",
    limit: Annotated[int, typer.Option(min=1, max=200)] = 20,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """List traces of runs."""
    from pml_cli.commands import tracing

    with session(url, as_json=as_json) as (client, out):
        tracing.traces(client, out, capability, intent, order, limit)


@learner.command("trace")
def learner_trace(trace: str, url: Url = None, as_json: AsJson = False) -> None:
    """Show one trace by its id; `pml trace` shows those of a workflow."""
    from pml_cli.commands import tracing

    with session(url, as_json=as_json) as (client, out):
        tracing.trace(client, out, trace)


@learner.command("rebuild")
def learner_rebuild(
    capability: Annotated[str | None, typer.Option(help="Id of a capability.")] = None,
    key_file: KeyFile = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Recompute all learned values from the stored traces, while learning goes on; Ctrl-C cancels,
    and a repetition continues. For the approver."""
    from pml_cli.commands import rebuilding
    from pml_cli.credentials import deciding_headers

    with session(url, as_json=as_json) as (client, out):
        rebuilding.rebuild(client, out, capability, deciding_headers(client.url, key_file))


@learner.command("forget-principal")
def learner_forget_principal(
    principal: str,
    admin: Annotated[
        bool, typer.Option("--admin", help="As the admin, by the approver's key: of anybody.")
    ] = False,
    key_file: KeyFile = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Delete the data of a principal: programs, results, calls, traces and opinions. Learned values
    stay."""
    from pml_cli.commands import tracing
    from pml_cli.credentials import deciding_headers

    with session(url, as_json=as_json) as (client, out):
        if admin:
            client.authorise(deciding_headers(client.url, key_file))
        raise typer.Exit(tracing.forget_principal(client, out, principal, is_confirmed=yes))
