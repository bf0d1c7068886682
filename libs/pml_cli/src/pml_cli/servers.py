"""`pml servers`: MCP servers and whether their hints are trusted."""

from typing import Annotated

import typer

from pml_cli.options import AsJson, Home, Url
from pml_cli.session import session

servers = typer.Typer(no_args_is_help=True, help="Add MCP servers and show their state.")


@servers.command("list")
def servers_list(url: Url = None, as_json: AsJson = False) -> None:
    """List connected servers, their state, and whether their hints are trusted."""
    from pml_cli.commands import servers as command

    with session(url, as_json=as_json) as (client, out):
        command.list_servers(client, out)


@servers.command("add")
def servers_add(
    name: str,
    command: Annotated[
        list[str] | None, typer.Argument(help="Command that starts it: -- COMMAND ARGS…")
    ] = None,
    at: Annotated[str | None, typer.Option("--url", help="HTTP URL, instead of a command.")] = None,
    trust_hints: Annotated[
        bool | None,
        typer.Option(help="Whether to trust its tools' hints (read-only, …); else asked."),
    ] = None,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Add a server to the stack's mcp.json; the next `pml up` connects it."""
    from pml_cli.commands import servers as adding
    from pml_cli.output import Output
    from pml_local.folder import DataFolder, default_home

    file = DataFolder(home or default_home()).mcp_servers
    entry = adding.entry_of(command or [], at)
    adding.add(Output(as_json=as_json), file, name, entry, trust_hints)
