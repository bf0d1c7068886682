"""`pml servers`: MCP servers, the trust in their hints, and changed definitions of tools."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from pml_cli.options import AsJson, Home, KeyFile, Url
from pml_cli.session import session

servers = typer.Typer(
    no_args_is_help=True,
    help="Add, check and reload MCP servers, show their state, accept their tools.",
)

ServersFile = Annotated[
    Path | None, typer.Argument(help="An mcpServers file; default the stack's mcp.json.")
]


@servers.command("list")
def servers_list(url: Url = None, as_json: AsJson = False) -> None:
    """List configured servers, their state, their tools in quarantine, and whether their hints are
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


@servers.command("reload")
def servers_reload(key_file: KeyFile = None, url: Url = None, as_json: AsJson = False) -> None:
    """Apply a changed mcpServers file: connect, disconnect and retry; the rest stays connected."""
    from pml_cli.commands import servers as command
    from pml_cli.credentials import deciding_headers

    with session(url, as_json=as_json) as (client, out):
        command.reload(client, out, deciding_headers(client.url, key_file))


@servers.command("check")
def servers_check(
    file: ServersFile = None,
    connect: Annotated[
        bool, typer.Option("--connect", help="Start and connect the servers, and list their tools.")
    ] = False,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Show each entry of an mcpServers file, its safe name and its faults; exit 1 with faults."""
    from pml_cli.commands import server_programs
    from pml_cli.output import Output

    chosen = file or _file_of(home)
    raise typer.Exit(server_programs.check(Output(as_json=as_json), chosen, connect=connect))


@servers.command("login")
def servers_login(
    name: str,
    file: Annotated[
        Path | None, typer.Option("--file", help="Its mcpServers file; default the stack's.")
    ] = None,
    browser: Annotated[
        bool, typer.Option(help="Whether to open the URL in a browser; it is printed anyway.")
    ] = True,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Log in at a server that wants it (OAuth), in a browser; the stack keeps the tokens."""
    from pml_cli.commands import server_programs
    from pml_cli.output import Output
    from pml_local.folder import DataFolder, default_home

    logins = DataFolder(home or default_home()).logins
    chosen = file or _file_of(home)
    server_programs.login(Output(as_json=as_json), chosen, name, logins, browser=browser)


@servers.command("logout")
def servers_logout(name: str, home: Home = None, as_json: AsJson = False) -> None:
    """Delete the stack's tokens of a server; they may still be valid at its provider."""
    from pml_cli.commands import server_entries
    from pml_cli.output import Output
    from pml_local.folder import DataFolder, default_home

    logins = DataFolder(home or default_home()).logins
    server_entries.logout(Output(as_json=as_json), logins, name)


@servers.command("add")
def servers_add(
    name: str,
    command: Annotated[
        list[str] | None, typer.Argument(help="Command that starts it: -- COMMAND ARGS…")
    ] = None,
    at: Annotated[str | None, typer.Option("--url", help="HTTP URL, instead of a command.")] = None,
    transport: Annotated[
        Literal["http", "sse"] | None, typer.Option(help="Of the URL; else found out.")
    ] = None,
    trust_hints: Annotated[
        bool | None,
        typer.Option(help="Whether to trust its tools' hints (read-only, …); else asked."),
    ] = None,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Add a server to the stack's mcp.json; `pml servers reload` or `pml up` connects it."""
    from pml_cli.commands import server_entries
    from pml_cli.output import Output

    entry = server_entries.entry_of(command or [], at, transport)
    server_entries.add(Output(as_json=as_json), _file_of(home), name, entry, trust_hints)


@servers.command("remove")
def servers_remove(name: str, home: Home = None, as_json: AsJson = False) -> None:
    """Remove a server from the stack's mcp.json; `pml servers reload` disconnects it."""
    from pml_cli.commands import server_entries
    from pml_cli.output import Output

    server_entries.remove(Output(as_json=as_json), _file_of(home), name)


def _file_of(home: Path | None) -> Path:
    from pml_local.folder import DataFolder, default_home

    return DataFolder(home or default_home()).mcp_servers
