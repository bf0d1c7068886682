"""The `pml` command: its table of subcommands. A subcommand imports its dependencies only when it
runs."""

import io
import os
import sys
from pathlib import Path

from pml_cli.command_line import Group, GroupAt, UsageError, run
from pml_cli.errors import USAGE, CommandError, asks_for_json, fail, unreadable
from pml_cli.offline import ANALYZE
from pml_cli.options import (
    AS_JSON,
    HOME,
    REASON,
    URL,
    flag,
    number,
    one_of,
    option,
    switch,
    word,
)
from pml_cli.session import session


def main() -> None:
    """Run the command. An expected error prints one line on stderr and sets the exit code; with
    JSON output it also prints one line of JSON on stdout."""
    as_json = asks_for_json(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(
                errors="backslashreplace"
            )  # output may hold any text of a program or server
    if "_ARGCOMPLETE" in os.environ:
        from pml_cli.completion import complete

        complete(PML)
    try:
        code = run(PML, sys.argv[1:], "pml")
        sys.stdout.flush()
    except CommandError as error:
        if isinstance(error, UsageError) and not as_json:
            name = error.usage.partition(" [")[0]
            sys.stderr.write(f"Usage: {error.usage}\nTry '{name} --help' for help.\n")
        fail(error, as_json=as_json)
    except ValueError as error:
        told = unreadable(error)
        if told is None:
            raise
        fail(told, as_json=as_json)
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except BrokenPipeError:  # nobody reads; nothing more is written, not even at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    raise SystemExit(code)


def _completion(*, install_completion: bool, show_completion: bool) -> int | None:
    if not install_completion and not show_completion:
        return None
    from pml_cli import completion

    return completion.install() if install_completion else completion.show()


PML = Group(
    "Procedural memory for AI agents: analysed, approved, crash-proof, learned.",
    (
        flag("--install-completion", "Install completion for the current shell."),
        flag(
            "--show-completion",
            "Show completion for the current shell, to copy it or customize the installation.",
        ),
    ),
    _completion,
)


def _home(given: Path | None) -> Path:
    from pml_local.folder import default_home

    return given or default_home()


@PML.command(
    HOME,
    option("--port", "Gateway port; default 8080, or a free one if taken.", type=int),
    option("--mcp-servers", "An mcpServers file; default <home>/mcp.json.", type=Path),
    AS_JSON,
)
def up(home: Path | None, port: int | None, mcp_servers: Path | None, as_json: bool) -> None:
    """Start the whole stack on this machine; Ctrl-C stops it."""
    from pml_cli.commands import up as command

    command.up(_home(home), port, mcp_servers, as_json=as_json)


@PML.command(
    URL, HOME, flag("--start", "Start a stack where none runs; it ends with this command.")
)
def mcp(url: str | None, home: Path | None, start: bool) -> None:
    """Serve MCP on standard input and output, for clients that know no HTTP: pass everything on to
    the running stack."""
    from pml_cli.commands import mcp as command

    command.serve(_home(home), url or os.environ.get("PML_URL"), start=start)


@PML.command(option("--home", "The demo's data folder.", type=Path))
def demo(home: Path | None) -> int:
    """Run a demo on real MCP servers: analyse, approve, run, learn, discover."""
    from pml_cli.demo.play import play

    return play(home)


@PML.command(URL, HOME, AS_JSON)
def status(url: str | None, home: Path | None, as_json: bool) -> int:
    """Show the health of the gateway and of the stack's parts."""
    from pml_cli.commands import status as command

    folder = _home(home)
    return command.status(*session(url, folder, as_json=as_json), folder)


@PML.command(
    word("file", "A TypeScript program, or - for standard input.", nargs="?"),
    option("--intent", "What the program is for, in natural language."),
    option("--name", "Name of the learned capability: namespace:action."),
    switch("--update", "Make the program the next version of your capability --name."),
    option("--version-tag", "Tag of that version, as v1.2.0."),
    option("--change-summary", "What that version changes, in a sentence."),
    option("--capability", "Run the learned capability of this name instead of a file."),
    option("--dag", "Run the DAG in a JSON file instead (see `pml trace --as dag`)."),
    option("--tool", "Call a single tool, server:tool, instead."),
    option(
        "--arg", "An argument, key=value; JSON if the value parses, else text.", action="append"
    ),
    option("--args-json", "A file with the arguments as a JSON object."),
    option("--timeout", "Time limit of the run, in seconds.", type=float),
    option("--idempotency-key", "Requests with the same key run the program at most once."),
    flag(
        "--fresh",
        "Ask for another run, also where the same one waits for approval, or was approved and its "
        "result is not fetched yet.",
    ),
    flag(
        "--per-layer-validation",
        "Ask for approval between layers of a DAG that do more than read.",
    ),
    option(
        "--detail",
        "`tasks`: answer with every tool call, not just those that failed or were approved.",
        **one_of("calls", "tasks"),
    ),
    switch("--dry-run", "Mock tools that are not read-only; learn nothing."),
    option("--mocks", 'A JSON file of mocks: {"server:tool": result or [...]}.'),
    URL,
    AS_JSON,
)
def execute(
    file: str | None,
    dag: str | None,
    tool: str | None,
    arg: list[str] | None,
    args_json: str | None,
    mocks: str | None,
    url: str | None,
    as_json: bool,
    **asked: object,
) -> int:
    """Run a program. Exit code 0: success; 1: error; 3: approval required; 5: still running."""
    from pml_cli.arguments import parse_arguments, read_object, read_run, read_source
    from pml_cli.commands import execution

    fields: dict[str, object] = {
        **asked,
        "code": None if file is None else read_source(file),
        "tool": tool and {"tool_id": tool},
        **read_run(dag, parse_arguments(arg or [], args_json)),
        "dry_run_mocks": None if mocks is None else read_object(mocks, "the mocks"),
    }
    request = {
        key: value for key, value in fields.items() if value is not None and value is not False
    }
    return execution.execute(*session(url, as_json=as_json), request)


@PML.command(word("workflow"), REASON, URL, AS_JSON)
def cancel(workflow: str, reason: str | None, url: str | None, as_json: bool) -> int:
    """Cancel a workflow in any state and show the calls it has made."""
    from pml_cli.commands import execution

    return execution.cancel(*session(url, as_json=as_json), workflow, reason)


@PML.command(
    word("intent", "What you want to do, in natural language."),
    option("--type", name="kind", default="all", **one_of("all", "tool", "capability")),
    option("--limit", default=10, **number(int, 1, 100)),
    URL,
    AS_JSON,
)
def discover(intent: str, kind: str, limit: int, url: str | None, as_json: bool) -> None:
    """Find tools and capabilities by intent."""
    from pml_cli.commands import finding

    finding.discover(*session(url, as_json=as_json), intent, kind, limit)


@PML.command(URL, AS_JSON)
def tools(url: str | None, as_json: bool) -> None:
    """List the tools of the connected MCP servers."""
    from pml_cli.commands import finding

    finding.tools(*session(url, as_json=as_json))


@PML.command(option("--catalog", "Offline: a tool catalog from `pml tools --json`."), URL, AS_JSON)
def types(catalog: str | None, url: str | None, as_json: bool) -> None:
    """Print TypeScript declarations (.d.ts) of the tools that a program can call."""
    from pml_cli.commands import types as command

    command.types(*session(url, as_json=as_json), catalog)


@PML.command(
    word("wanted", "Name or id; default: list all.", nargs="?"),
    option(
        "--as",
        "Each tool once (definition), or each call (invocations).",
        name="shown",
        default="structure",
        **one_of("structure", "definition", "invocations"),
    ),
    option(
        "--limit",
        "Capabilities (default 50), or runs (10, at most 50).",
        **number(int, 1, 200),
    ),
    URL,
    AS_JSON,
)
def capabilities(
    wanted: str | None, shown: str, limit: int | None, url: str | None, as_json: bool
) -> None:
    """List learned capabilities, or show one with its structure and paths, or as it is drawn."""
    from pml_cli.commands import reading

    client, out = session(url, as_json=as_json)
    if wanted is None:
        reading.capabilities(client, out, limit)
    elif shown == "invocations":
        reading.invocations(client, out, wanted, limit)
    else:
        (reading.definition if shown == "definition" else reading.capability)(client, out, wanted)


@PML.command(
    word("capability", "Name or id."),
    word(
        "policy",
        "memoize: until the TTL; persistent: until code or policy changes.",
        nargs="?",
        **one_of("none", "memoize", "persistent"),
    ),
    option("--ttl", "Seconds; default 3600 for memoize.", type=int),
    switch("--force", "Cache even if tools may have effects; cached answers skip them."),
    URL,
    AS_JSON,
)
def cache(
    capability: str,
    policy: str | None,
    ttl: int | None,
    force: bool,
    url: str | None,
    as_json: bool,
) -> None:
    """Set whether earlier results answer calls of a capability; without a policy, show it."""
    from pml_cli.commands import caching

    chosen = {"policy": policy, "ttl_s": ttl, "force": force or None}
    caching.cache(*session(url, as_json=as_json), capability, chosen)


@PML.command(
    word("workflow"),
    option(
        "--as",
        "Output; a DAG can be run again; console: what the program wrote.",
        name="shown",
        default="tree",
        **one_of("tree", "dag", "console"),
    ),
    option("--limit", "Lines of the console; default 1000.", **number(int, 1, 5000)),
    option("--offset", "Lines of the console to begin after.", **number(int, 0)),
    URL,
    AS_JSON,
)
def trace(
    workflow: str,
    shown: str,
    limit: int | None,
    offset: int | None,
    url: str | None,
    as_json: bool,
) -> None:
    """Show a workflow's structure, path, calls and durations; its calls as a DAG; or all that is
    kept of its console, in pages."""
    from pml_cli.commands import reading

    client, out = session(url, as_json=as_json)
    if shown == "console":
        reading.console(client, out, workflow, limit, offset)
        return
    if limit is not None or offset is not None:
        raise CommandError("--limit and --offset are for --as console", USAGE)
    (reading.dag if shown == "dag" else reading.trace)(client, out, workflow)


PML.entries |= {
    "approvals": GroupAt("List pending approvals and decide on them.", "pml_cli.approvals"),
    "servers": GroupAt(
        "Add, check and reload MCP servers, show their state, accept their tools.",
        "pml_cli.servers",
    ),
    "dns": GroupAt(
        "Look up, search and change the records of capabilities. A NAME may select a version: "
        "fs:read@2, fs:read@v1, fs:read@2025-12-22.",
        "pml_cli.dns",
    ),
    "registry": GroupAt("Show and rebuild the vector index.", "pml_cli.registry"),
    "bus": GroupAt("Provision the streams on NATS.", "pml_cli.bus"),
    "workflows": GroupAt("Delete the data of workflows.", "pml_cli.workflows"),
    "learner": GroupAt(
        "Read and delete what was recorded of runs, learn from it again.", "pml_cli.learner"
    ),
    "analyze": ANALYZE,
}
