"""`pml servers`: MCP servers, the trust in their hints, and changed definitions of tools."""

from pathlib import Path

from pml_cli.command_line import Group
from pml_cli.options import AS_JSON, HOME, KEY_FILE, URL, flag, one_of, option, switch, word
from pml_cli.session import session

GROUP = Group()


@GROUP.command(URL, AS_JSON, name="list")
def list_(url: str | None, as_json: bool) -> None:
    """List configured servers, their state, their tools in quarantine, and whether their hints are
    trusted."""
    from pml_cli.commands import servers as command

    command.list_servers(*session(url, as_json=as_json))


@GROUP.command(word("server"), word("tool"), URL, AS_JSON)
def diff(server: str, tool: str, url: str | None, as_json: bool) -> None:
    """Show what a server changed in the definition of a tool in quarantine."""
    from pml_cli.commands import servers as command

    command.diff(*session(url, as_json=as_json), server, tool)


@GROUP.command(
    word("server"), word("tools", "Default: all in quarantine.", nargs="*"), KEY_FILE, URL, AS_JSON
)
def accept(
    server: str, tools: list[str], key_file: Path | None, url: str | None, as_json: bool
) -> None:
    """Accept changed definitions of a server's tools, which ends their quarantine."""
    from pml_cli.commands import servers as command
    from pml_cli.credentials import deciding_headers

    client, out = session(url, as_json=as_json)
    command.accept(client, out, server, tools, deciding_headers(client.url, key_file))


@GROUP.command(KEY_FILE, URL, AS_JSON)
def reload(key_file: Path | None, url: str | None, as_json: bool) -> None:
    """Apply a changed mcpServers file: connect, disconnect and retry; the rest stays connected."""
    from pml_cli.commands import servers as command
    from pml_cli.credentials import deciding_headers

    client, out = session(url, as_json=as_json)
    command.reload(client, out, deciding_headers(client.url, key_file))


@GROUP.command(
    word("file", "An mcpServers file; default the stack's mcp.json.", nargs="?", type=Path),
    flag("--connect", "Start and connect the servers, and list their tools."),
    HOME,
    AS_JSON,
)
def check(file: Path | None, connect: bool, home: Path | None, as_json: bool) -> int:
    """Show each entry of an mcpServers file, its safe name and its faults; exit 1 with faults."""
    from pml_cli.commands import server_programs
    from pml_cli.output import Output

    chosen = file or _file_of(home)
    return server_programs.check(Output(as_json=as_json), chosen, connect=connect)


@GROUP.command(
    word("name"),
    option("--file", "Its mcpServers file; default the stack's.", type=Path),
    switch(
        "--browser",
        "Whether to open the URL in a browser; it is printed anyway.",
        default=True,
    ),
    HOME,
    AS_JSON,
)
def login(name: str, file: Path | None, browser: bool, home: Path | None, as_json: bool) -> None:
    """Log in at a server that wants it (OAuth), in a browser; the stack keeps the tokens."""
    from pml_cli.commands import server_programs
    from pml_cli.output import Output
    from pml_local.folder import DataFolder, default_home

    logins = DataFolder(home or default_home()).logins
    chosen = file or _file_of(home)
    server_programs.login(Output(as_json=as_json), chosen, name, logins, browser=browser)


@GROUP.command(word("name"), HOME, AS_JSON)
def logout(name: str, home: Path | None, as_json: bool) -> None:
    """Delete the stack's tokens of a server; they may still be valid at its provider."""
    from pml_cli.commands import server_entries
    from pml_cli.output import Output
    from pml_local.folder import DataFolder, default_home

    logins = DataFolder(home or default_home()).logins
    server_entries.logout(Output(as_json=as_json), logins, name)


@GROUP.command(
    word("name"),
    word("command", "Command that starts it: -- COMMAND ARGS…", nargs="*"),
    option("--url", "HTTP URL, instead of a command.", name="at"),
    option("--transport", "Of the URL; else found out.", **one_of("http", "sse")),
    switch(
        "--trust-hints",
        "Whether to trust its tools' hints (read-only, …); else asked.",
        default=None,
    ),
    HOME,
    AS_JSON,
)
def add(
    name: str,
    command: list[str],
    at: str | None,
    transport: str | None,
    trust_hints: bool | None,
    home: Path | None,
    as_json: bool,
) -> None:
    """Add a server to the stack's mcp.json; `pml servers reload` or `pml up` connects it."""
    from pml_cli.commands import server_entries
    from pml_cli.output import Output

    entry = server_entries.entry_of(command, at, transport)
    server_entries.add(Output(as_json=as_json), _file_of(home), name, entry, trust_hints)


@GROUP.command(word("name"), HOME, AS_JSON)
def remove(name: str, home: Path | None, as_json: bool) -> None:
    """Remove a server from the stack's mcp.json; `pml servers reload` disconnects it."""
    from pml_cli.commands import server_entries
    from pml_cli.output import Output

    server_entries.remove(Output(as_json=as_json), _file_of(home), name)


def _file_of(home: Path | None) -> Path:
    from pml_local.folder import DataFolder, default_home

    return DataFolder(home or default_home()).mcp_servers
