"""The `pml` command: its table of subcommands. The one that runs imports what it needs."""

import io
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from pml_cli.approvals import approvals
from pml_cli.bus import bus
from pml_cli.errors import USAGE, CommandError, asks_for_json, fail
from pml_cli.offline import offline
from pml_cli.options import AsJson, Home, Reason, Url
from pml_cli.servers import servers
from pml_cli.session import session

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Procedural memory for AI agents: analysed, approved, crash-proof, learned.",
)
app.add_typer(approvals, name="approvals")
app.add_typer(servers, name="servers")
app.add_typer(bus, name="bus")
app.add_typer(offline)


def main() -> None:
    """Run the command; an expected error is one line on stderr and an exit code, and one of JSON on
    stdout where JSON is asked for."""
    as_json = asks_for_json(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # whatever a program or a server wrote
    try:
        code = app(standalone_mode=not as_json)
    except CommandError as error:
        fail(error, as_json=as_json)
    except typer.TyperException as error:  # what was typed is no command
        told = error.format_message() if isinstance(error, typer.BadParameter) else str(error)
        fail(CommandError(told, USAGE), as_json=as_json)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    raise SystemExit(code)


def _home(given: Path | None) -> Path:
    from pml_local.folder import default_home

    return given or default_home()


@app.command()
def up(
    home: Home = None,
    port: Annotated[int | None, typer.Option(help="8080, or a free one when taken.")] = None,
    mcp_servers: Annotated[
        Path | None, typer.Option(help="An mcpServers file; else <home>/mcp.json.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Start the whole stack on this machine; Ctrl-C stops it."""
    from pml_cli.commands import up as command

    command.up(_home(home), port, mcp_servers, as_json=as_json)


@app.command()
def demo(
    home: Annotated[Path | None, typer.Option(help="Where the demo keeps its data.")] = None,
) -> None:
    """The main job on real MCP servers: analyse, approve, run, learn, find again."""
    from pml_cli.demo.play import play

    raise typer.Exit(play(home))


@app.command()
def status(url: Url = None, home: Home = None, as_json: AsJson = False) -> None:
    """Health of the gateway and the parts of the stack."""
    from pml_cli.commands import reading

    folder = _home(home)
    with session(url, folder, as_json=as_json) as (client, out):
        raise typer.Exit(reading.status(client, out, folder))


@app.command()
def execute(
    file: Annotated[
        str | None, typer.Argument(help="A TypeScript program, or - for standard input.")
    ] = None,
    intent: Annotated[str | None, typer.Option(help="What it is for, in your words.")] = None,
    name: Annotated[str | None, typer.Option(help="Name to learn it by: namespace:action.")] = None,
    capability: Annotated[
        str | None, typer.Option(help="Run what was learned under this name instead of a file.")
    ] = None,
    dag: Annotated[
        str | None, typer.Option(help="Run a JSON file's DAG instead; `pml trace --as dag --json`.")
    ] = None,
    tool: Annotated[
        str | None, typer.Option(help="Call one tool, server:tool, with the arguments instead.")
    ] = None,
    arg: Annotated[
        list[str] | None, typer.Option(help="key=value; JSON where it parses, else text.")
    ] = None,
    args_json: Annotated[str | None, typer.Option(help="A file with a JSON object.")] = None,
    timeout: Annotated[float | None, typer.Option(help="Seconds the program may run.")] = None,
    idempotency_key: Annotated[
        str | None, typer.Option(help="The same key never runs the program twice.")
    ] = None,
    per_layer_validation: Annotated[
        bool,
        typer.Option(
            "--per-layer-validation",
            help="A DAG waits for a person between layers that do more than read.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option(help="Mocks answer tools that are not read-only; nothing is learned.")
    ] = False,
    mocks: Annotated[
        str | None,
        typer.Option(help='A JSON file for a dry run: {"server:tool": answer or [...]}.'),
    ] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Run a program. Exit code 0: success; 1: error; 3: waits for approval; 5: still running."""
    from pml_cli.arguments import parse_arguments, read_object, read_run, read_source
    from pml_cli.commands import execution

    fields: dict[str, object] = {
        "code": None if file is None else read_source(file),
        "intent": intent,
        "name": name,
        "capability": capability,
        "tool": tool and {"toolId": tool},
        **read_run(dag, parse_arguments(arg or [], args_json)),
        "timeout": timeout,
        "idempotency_key": idempotency_key,
        "per_layer_validation": per_layer_validation or None,
        "dryRun": dry_run or None,
        "dryRunMocks": None if mocks is None else read_object(mocks, "the mocks"),
    }
    request = {key: value for key, value in fields.items() if value is not None}
    with session(url, as_json=as_json) as (client, out):
        raise typer.Exit(execution.execute(client, out, request))


@app.command()
def cancel(workflow: str, reason: Reason = None, url: Url = None, as_json: AsJson = False) -> None:
    """End a workflow wherever it stands, and say what it has done."""
    from pml_cli.commands import execution

    with session(url, as_json=as_json) as (client, out):
        raise typer.Exit(execution.cancel(client, out, workflow, reason))


@app.command()
def discover(
    intent: Annotated[str, typer.Argument(help="What you want to do, in your words.")],
    kind: Annotated[Literal["all", "tool", "capability"], typer.Option("--type")] = "all",
    limit: Annotated[int, typer.Option(min=1, max=100)] = 10,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Find tools and capabilities by intent."""
    from pml_cli.commands import reading

    with session(url, as_json=as_json) as (client, out):
        reading.discover(client, out, intent, kind, limit)


@app.command()
def tools(url: Url = None, as_json: AsJson = False) -> None:
    """List the tools of the connected MCP servers."""
    from pml_cli.commands import reading

    with session(url, as_json=as_json) as (client, out):
        reading.tools(client, out)


@app.command()
def types(
    catalog: Annotated[
        str | None, typer.Option(help="Offline: the tools, as `pml tools --json`.")
    ] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Print TypeScript declarations (.d.ts) of what a program can use."""
    from pml_cli.commands import types as command

    with session(url, as_json=as_json) as (client, out):
        command.types(client, out, catalog)


@app.command()
def capabilities(
    wanted: Annotated[str | None, typer.Argument(help="Name or id; all without it.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200)] = 50,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """List what was learned, or show one capability with its structure and paths."""
    from pml_cli.commands import reading

    with session(url, as_json=as_json) as (client, out):
        if wanted is None:
            reading.capabilities(client, out, limit)
        else:
            reading.capability(client, out, wanted)


@app.command()
def cache(
    capability: Annotated[str, typer.Argument(help="Name or id.")],
    policy: Annotated[
        Literal["none", "memoize", "persistent"] | None,
        typer.Argument(help="memoize: for a time; persistent: until code or policy change."),
    ] = None,
    ttl: Annotated[int | None, typer.Option(help="Seconds; memoize keeps for 3600.")] = None,
    force: Annotated[
        bool, typer.Option(help="Also where tools may change something: the cache leaves it out.")
    ] = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Choose whether earlier results answer calls of a capability; without a policy, show it."""
    from pml_cli.commands import caching

    chosen = {"policy": policy, "ttl_s": ttl, "force": force or None}
    with session(url, as_json=as_json) as (client, out):
        caching.cache(client, out, capability, chosen)


@app.command()
def trace(
    workflow: str,
    shown: Annotated[
        Literal["tree", "dag"], typer.Option("--as", help="A DAG can be run again.")
    ] = "tree",
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Show a workflow's structure, path, calls and durations; or which call waited for which."""
    from pml_cli.commands import reading

    with session(url, as_json=as_json) as (client, out):
        (reading.dag if shown == "dag" else reading.trace)(client, out, workflow)
