"""Subcommands that need no stack."""

import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pml_cli.errors import USAGE, CommandError
from pml_cli.options import AsJson

if TYPE_CHECKING:
    from pml_cli.commands.analysis import Reader
    from pml_cli.output import Output

offline = typer.Typer()


@offline.command()
def analyze(
    file: Annotated[
        str | None, typer.Argument(help="A TypeScript program, or - for standard input.")
    ] = None,
    catalog: Annotated[str | None, typer.Option(help="The tools, as `pml tools --json`.")] = None,
    policy: Annotated[str | None, typer.Option(help="A policy file (JSON).")] = None,
    capabilities: Annotated[
        str | None, typer.Option(help="Capabilities it may call, as `pml capabilities --json`.")
    ] = None,
    scope: Annotated[
        str, typer.Option(help="Whose policy of the file counts: org.project.")
    ] = "local.default",
    form: Annotated[
        Literal["tree", "json", "mermaid", "dot"] | None,
        typer.Option("--format", help="How to show it: tree, unless something else is said."),
    ] = None,
    types: Annotated[bool, typer.Option("--types", help="Check types too: errors reject.")] = False,
    lift: Annotated[
        bool, typer.Option("--lift", help="Print it with its literal arguments as parameters.")
    ] = False,
    stdin_jsonl: Annotated[
        bool,
        typer.Option(
            "--stdin-jsonl", help="Programs from stdin, one {id, code} a line; an answer a line."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Read a program without running it, offline: structure and decision. Exit code 1: rejected."""
    from pml_cli.commands import analysis
    from pml_cli.output import Output

    chosen = _form(form, as_json=as_json or stdin_jsonl)
    if (file is None) != stdin_jsonl:
        raise CommandError("name one program, or - for standard input, or --stdin-jsonl", USAGE)
    files = analysis.Files(catalog, policy, capabilities, scope)
    reader = analysis.reader(files, types=types)
    out = Output(as_json=chosen == "json")
    if lift:
        raise typer.Exit(_lift(out, file, reader, form))
    if file is None:
        raise typer.Exit(analysis.analyze_lines(reader, sys.stdin.buffer, out))
    raise typer.Exit(analysis.analyze(out, file, reader, chosen))


def _lift(out: "Output", file: str | None, reader: "Reader", form: str | None) -> int:
    from pml_cli.commands.lifting import lift

    if file is None or form not in (None, "json"):
        raise CommandError("--lift prints one program, as it is or as JSON", USAGE)
    return lift(out, file, reader)


def _form(
    form: Literal["tree", "json", "mermaid", "dot"] | None, *, as_json: bool
) -> Literal["tree", "json", "mermaid", "dot"]:
    if as_json and form not in (None, "json"):
        raise CommandError(f"--format {form} is no JSON: leave one of the two out", USAGE)
    return "json" if as_json else form or "tree"
