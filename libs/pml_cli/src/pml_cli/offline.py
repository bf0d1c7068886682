"""Subcommands that need no stack."""

import sys
from typing import TYPE_CHECKING, Literal

from pml_cli.command_line import Command
from pml_cli.errors import USAGE, CommandError
from pml_cli.options import AS_JSON, flag, one_of, option, word

if TYPE_CHECKING:
    from pml_cli.commands.analysis import Reader
    from pml_cli.output import Output

_Form = Literal["tree", "json", "mermaid", "dot"]


def _analyze(
    file: str | None,
    catalog: str | None,
    policy: str | None,
    capabilities: str | None,
    scope: str,
    form: _Form | None,
    types: bool,
    lift: bool,
    stdin_jsonl: bool,
    as_json: bool,
) -> int:
    from pml_cli.commands import analysis
    from pml_cli.output import Output

    chosen = _form(form, as_json=as_json or stdin_jsonl)
    if (file is None) != stdin_jsonl:
        raise CommandError("name one program, or - for standard input, or --stdin-jsonl", USAGE)
    files = analysis.Files(catalog, policy, capabilities, scope)
    reader = analysis.reader(files, types=types)
    out = Output(as_json=chosen == "json")
    if lift:
        return _lift(out, file, reader, form)
    if file is None:
        return analysis.analyze_lines(reader, sys.stdin.buffer, out)
    return analysis.analyze(out, file, reader, chosen)


ANALYZE = Command(
    "Read a program without running it, offline: structure and decision. Exit code 1: rejected.",
    (
        word("file", "A TypeScript program, or - for standard input.", nargs="?"),
        option("--catalog", "The tools, as `pml tools --json`."),
        option("--policy", "A policy file (JSON)."),
        option("--capabilities", "Capabilities it may call, as `pml capabilities --json`."),
        option("--scope", "Whose policy of the file counts: org.project.", default="local.default"),
        option(
            "--format",
            "How to show it: tree, unless something else is said.",
            name="form",
            **one_of("tree", "json", "mermaid", "dot"),
        ),
        flag("--types", "Check types too: errors reject."),
        flag("--lift", "Print it with its literal arguments as parameters."),
        flag("--stdin-jsonl", "Programs from stdin, one {id, code} a line; an answer a line."),
        AS_JSON,
    ),
    _analyze,
)


def _lift(out: "Output", file: str | None, reader: "Reader", form: str | None) -> int:
    from pml_cli.commands.lifting import lift

    if file is None or form not in (None, "json"):
        raise CommandError("--lift prints one program, as it is or as JSON", USAGE)
    return lift(out, file, reader)


def _form(form: _Form | None, *, as_json: bool) -> _Form:
    if as_json and form not in (None, "json"):
        raise CommandError(f"--format {form} is no JSON: leave one of the two out", USAGE)
    return "json" if as_json else form or "tree"
