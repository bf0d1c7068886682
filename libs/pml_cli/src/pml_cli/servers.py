"""`pml servers`: MCP servers, the trust in their hints, and changed definitions of tools."""

from typing import Annotated

import typer

from pml_cli.options import AsJson, Home, KeyFile, Url
from pml_cli.session import session

servers = typer.Typer(
    no_args_is_help=True, help="Add MCP servers, show their state, accept their tools."
)


@servers.command("list")
def servers_list(url: Url = None, as_json: AsJson = False) -> None:
    """List connected servers, their state, their tools in quarantine, and whether their hints are
    trusted."""
    from pml_cli.commands import servers as command

    with session(url, as_json=as_json) as (client, out):
        command.list_servers(client, out)


@servers.command("diff")
def servers_diff(server: str, tool: str, url: Url = None, as_json: AsJson = False) -> None:
    """Show what a server changed in the definition of a tool in quarantine."""
    from pml_cli.commands import servers as command

    with session(url, as_json=as_json) as (client, out):
        command.diff(client, out, server, tool)


@servers.command("accept")
def servers_accept(
    server: str,
    tools: Annotated[list[str] | None, typer.Argument(help="Default: all in quarantine.")] = None,
    key_file: KeyFile = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Accept changed definitions of a server's tools, which ends their quarantine."""
    from pml_cli.commands import servers as command
    from pml_cli.credentials import deciding_headers

    with session(url, as_json=as_json) as (client, out):
        approver = deciding_headers(client.url, key_file)
        command.accept(client, out, server, tools or [], approver)


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
