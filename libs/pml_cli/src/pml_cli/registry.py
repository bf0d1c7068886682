"""`pml registry`: the vector index of discovery."""

from typing import Annotated

import typer

from pml_cli.options import AsJson, KeyFile, Url
from pml_cli.session import session

registry = typer.Typer(no_args_is_help=True, help="Show and rebuild the vector index.")


@registry.command("index")
def registry_index(url: Url = None, as_json: AsJson = False) -> None:
    """Show where vectors are searched, the embedding models, and the last rebuild."""
    from pml_cli.commands import registry as command

    with session(url, as_json=as_json) as (client, out):
        command.index(client, out)


@registry.command("reindex")
def registry_reindex(
    wait_s: Annotated[
        float,
        typer.Option("--wait", min=0, help="Seconds to wait for its end; 0: only begin it."),
    ] = 3600.0,
    key_file: KeyFile = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Rebuild the vector index from Postgres and show its progress; what Postgres does not have is
    removed. A rebuild under way goes on. Exit code 1: it has not ended in time."""
    from pml_cli.commands import registry as command
    from pml_cli.credentials import deciding_headers

    with session(url, as_json=as_json) as (client, out):
        approver = deciding_headers(client.url, key_file)
        raise typer.Exit(command.reindex(client, out, wait_s, approver))
