"""The command that runs the embedded stack."""

import asyncio
import json
import sys
from pathlib import Path

from pml_cli.errors import CommandError
from pml_cli.markup import escape
from pml_cli.render.events import event_line
from pml_cli.terminal import Terminal
from pml_local.composition import StackOptions
from pml_local.errors import StackError
from pml_local.events import Event, StackReady
from pml_local.services import GATEWAY_PORT
from pml_local.supervisor import run_until_stopped


def up(home: Path, port: int | None, mcp_servers: Path | None, *, as_json: bool) -> None:
    """Run the stack until Ctrl-C or SIGTERM. Raises CommandError."""
    console = Terminal(stderr=True)

    def tell(event: Event) -> None:
        if isinstance(event, StackReady):
            _announce(event, asked_port=port, as_json=as_json)
        else:
            console.print(event_line(event), style="dim", markup=False)

    try:
        options = StackOptions(home=home, gateway_port=port, mcp_servers=mcp_servers)
        asyncio.run(run_until_stopped(options, tell))
    except StackError as error:
        raise CommandError(str(error)) from error


def _announce(event: StackReady, *, asked_port: int | None, as_json: bool) -> None:
    if as_json:
        ready = {"url": event.url, "home": str(event.home), "mcp_servers": dict(event.servers)}
        sys.stdout.write(json.dumps(ready) + "\n")
        sys.stdout.flush()
        return
    console = Terminal()
    console.print(f"[green]ready[/] at [bold]{event.url}[/]  data in {escape(str(event.home))}")
    if asked_port is None and not event.url.endswith(f":{GATEWAY_PORT}"):
        console.print(f"  port {GATEWAY_PORT} was taken")
    ready = [name for name, problem in event.servers.items() if not problem]
    if ready:
        console.print(f"  MCP servers ready: {escape(', '.join(ready))}")
    for name, problem in event.servers.items():
        if problem:
            console.print(f"  [yellow]MCP server {escape(name)} {escape(problem)}[/]")
    console.print(f"  MCP clients connect to {event.url}/mcp (Streamable HTTP)")
    console.print(f"  REST API and its documentation: {event.url}/docs")
    console.print("  Ctrl-C stops everything")
