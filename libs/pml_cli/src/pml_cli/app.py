"""The `pml` command: its table of subcommands. A subcommand imports its dependencies only when it
runs."""

import io
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from pml_cli.approvals import approvals
from pml_cli.bus import bus
from pml_cli.dns import dns
from pml_cli.errors import USAGE, CommandError, asks_for_json, fail
from pml_cli.learner import learner
from pml_cli.offline import offline
from pml_cli.options import AsJson, Home, Reason, Url
from pml_cli.registry import registry
from pml_cli.servers import servers
from pml_cli.session import session
from pml_cli.workflows import workflows

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Procedural memory for AI agents: analysed, approved, crash-proof, learned.",
)
app.add_typer(approvals, name="approvals")
app.add_typer(servers, name="servers")
app.add_typer(dns, name="dns")
app.add_typer(registry, name="registry")
app.add_typer(bus, name="bus")
app.add_typer(workflows, name="workflows")
app.add_typer(learner, name="learner")
app.add_typer(offline)


def main() -> None:
    """Run the command. An expected error prints one line on stderr and sets the exit code; with
    JSON output it also prints one line of JSON on stdout."""
    as_json = asks_for_json(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(
                errors="backslashreplace"
            )  # output may hold any text of a program or server
    try:
        code = app(standalone_mode=not as_json)
    except CommandError as error:
        fail(error, as_json=as_json)
    except typer.TyperException as error:  # invalid command line
        message = error.format_message() if isinstance(error, typer.BadParameter) else str(error)
        fail(CommandError(message, USAGE), as_json=as_json)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    raise SystemExit(code)


def _home(given: Path | None) -> Path:
    from pml_local.folder import default_home

    return given or default_home()


@app.command()
def up(
    home: Home = None,
    port: Annotated[
        int | None, typer.Option(help="Gateway port; default 8080, or a free one if taken.")
    ] = None,
    mcp_servers: Annotated[
        Path | None, typer.Option(help="An mcpServers file; default <home>/mcp.json.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Start the whole stack on this machine; Ctrl-C stops it."""
    from pml_cli.commands import up as command

    command.up(_home(home), port, mcp_servers, as_json=as_json)


@app.command()
def mcp(
    url: Url = None,
    home: Home = None,
    start: Annotated[
        bool,
        typer.Option("--start", help="Start a stack where none runs; it ends with this command."),
    ] = False,
) -> None:
    """Serve MCP on standard input and output, for clients that know no HTTP: pass everything on to
    the running stack."""
    import os

    from pml_cli.commands import mcp as command

    command.serve(_home(home), url or os.environ.get("PML_URL"), start=start)


@app.command()
def demo(
    home: Annotated[Path | None, typer.Option(help="The demo's data folder.")] = None,
) -> None:
    """Run a demo on real MCP servers: analyse, approve, run, learn, discover."""
    from pml_cli.demo.play import play

    raise typer.Exit(play(home))


@app.command()
def status(url: Url = None, home: Home = None, as_json: AsJson = False) -> None:
    """Show the health of the gateway and of the stack's parts."""
    from pml_cli.commands.status import status

    folder = _home(home)
    with session(url, folder, as_json=as_json) as (client, out):
        raise typer.Exit(status(client, out, folder))


@app.command()
def execute(
    file: Annotated[
        str | None, typer.Argument(help="A TypeScript program, or - for standard input.")
    ] = None,
    intent: Annotated[
        str | None, typer.Option(help="What the program is for, in natural language.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the learned capability: namespace:action.")
    ] = None,
    update: Annotated[
        bool, typer.Option(help="Make the program the next version of your capability --name.")
    ] = False,
    version_tag: Annotated[str | None, typer.Option(help="Tag of that version, as v1.2.0.")] = None,
    change_summary: Annotated[
        str | None, typer.Option(help="What that version changes, in a sentence.")
    ] = None,
    capability: Annotated[
        str | None, typer.Option(help="Run the learned capability of this name instead of a file.")
    ] = None,
    dag: Annotated[
        str | None,
        typer.Option(help="Run the DAG in a JSON file instead (see `pml trace --as dag`)."),
    ] = None,
    tool: Annotated[
        str | None, typer.Option(help="Call a single tool, server:tool, instead.")
    ] = None,
    arg: Annotated[
        list[str] | None,
        typer.Option(help="An argument, key=value; JSON if the value parses, else text."),
    ] = None,
    args_json: Annotated[
        str | None, typer.Option(help="A file with the arguments as a JSON object.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(help="Time limit of the run, in seconds.")
    ] = None,
    idempotency_key: Annotated[
        str | None, typer.Option(help="Requests with the same key run the program at most once.")
    ] = None,
    fresh: Annotated[
        bool,
        typer.Option(
            "--fresh",
            help="Ask for another run, also where the same one waits for approval, or was approved "
            "and its result is not fetched yet.",
        ),
    ] = False,
    per_layer_validation: Annotated[
        bool,
        typer.Option(
            "--per-layer-validation",
            help="Ask for approval between layers of a DAG that do more than read.",
        ),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option(help="Mock tools that are not read-only; learn nothing.")
    ] = False,
    mocks: Annotated[
        str | None,
        typer.Option(help='A JSON file of mocks: {"server:tool": result or [...]}.'),
    ] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Run a program. Exit code 0: success; 1: error; 3: approval required; 5: still running."""
    from pml_cli.arguments import parse_arguments, read_object, read_run, read_source
    from pml_cli.commands import execution

    fields: dict[str, object] = {
        "code": None if file is None else read_source(file),
        "intent": intent,
        "name": name,
        "update": update or None,
        "version_tag": version_tag,
        "change_summary": change_summary,
        "capability": capability,
        "tool": tool and {"tool_id": tool},
        **read_run(dag, parse_arguments(arg or [], args_json)),
        "timeout": timeout,
        "idempotency_key": idempotency_key,
        "fresh": fresh or None,
        "per_layer_validation": per_layer_validation or None,
        "dry_run": dry_run or None,
        "dry_run_mocks": None if mocks is None else read_object(mocks, "the mocks"),
    }
    request = {key: value for key, value in fields.items() if value is not None}
    with session(url, as_json=as_json) as (client, out):
        raise typer.Exit(execution.execute(client, out, request))


@app.command()
def cancel(workflow: str, reason: Reason = None, url: Url = None, as_json: AsJson = False) -> None:
    """Cancel a workflow in any state and show the calls it has made."""
    from pml_cli.commands import execution

    with session(url, as_json=as_json) as (client, out):
        raise typer.Exit(execution.cancel(client, out, workflow, reason))


@app.command()
def discover(
    intent: Annotated[str, typer.Argument(help="What you want to do, in natural language.")],
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
        str | None, typer.Option(help="Offline: a tool catalog from `pml tools --json`.")
    ] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Print TypeScript declarations (.d.ts) of the tools that a program can call."""
    from pml_cli.commands import types as command

    with session(url, as_json=as_json) as (client, out):
        command.types(client, out, catalog)


@app.command()
def capabilities(
    wanted: Annotated[str | None, typer.Argument(help="Name or id; default: list all.")] = None,
    shown: Annotated[
        Literal["structure", "definition", "invocations"],
        typer.Option("--as", help="Each tool once (definition), or each call (invocations)."),
    ] = "structure",
    limit: Annotated[
        int | None,
        typer.Option(min=1, max=200, help="Capabilities (default 50), or runs (10, at most 50)."),
    ] = None,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """List learned capabilities, or show one with its structure and paths, or as it is drawn."""
    from pml_cli.commands import reading

    with session(url, as_json=as_json) as (client, out):
        if wanted is None:
            reading.capabilities(client, out, limit)
        elif shown == "invocations":
            reading.invocations(client, out, wanted, limit)
        else:
            (reading.definition if shown == "definition" else reading.capability)(
                client, out, wanted
            )


@app.command()
def cache(
    capability: Annotated[str, typer.Argument(help="Name or id.")],
    policy: Annotated[
        Literal["none", "memoize", "persistent"] | None,
        typer.Argument(help="memoize: until the TTL; persistent: until code or policy changes."),
    ] = None,
    ttl: Annotated[int | None, typer.Option(help="Seconds; default 3600 for memoize.")] = None,
    force: Annotated[
        bool, typer.Option(help="Cache even if tools may have effects; cached answers skip them.")
    ] = False,
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Set whether earlier results answer calls of a capability; without a policy, show it."""
    from pml_cli.commands import caching

    chosen = {"policy": policy, "ttl_s": ttl, "force": force or None}
    with session(url, as_json=as_json) as (client, out):
        caching.cache(client, out, capability, chosen)


@app.command()
def trace(
    workflow: str,
    shown: Annotated[
        Literal["tree", "dag"], typer.Option("--as", help="Output; a DAG can be run again.")
    ] = "tree",
    url: Url = None,
    as_json: AsJson = False,
) -> None:
    """Show a workflow's structure, path, calls and durations, or its calls as a DAG."""
    from pml_cli.commands import reading

    with session(url, as_json=as_json) as (client, out):
        (reading.dag if shown == "dag" else reading.trace)(client, out, workflow)
