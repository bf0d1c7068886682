"""Reading a program offline, without any stack."""

from collections.abc import Sequence

from pydantic import JsonValue, ValidationError
from rich.console import RenderableType
from rich.markup import escape

from pml_analyzer.domain.analysis import Analysis, Rejection
from pml_analyzer.domain.analysis import analyze as read
from pml_analyzer.domain.report import to_json
from pml_cli.arguments import read_json, read_source
from pml_cli.errors import FAILED, USAGE, CommandError
from pml_cli.output import Output
from pml_cli.render.structure import structure_tree
from pml_common.contracts.decision import Policy
from pml_common.contracts.structure import Diagnostic
from pml_common.contracts.tool import ToolDefinition

COLOURS = {"allow": "green", "ask": "yellow", "deny": "red"}


def analyze(
    out: Output, file: str, catalog: str | None, policy: str | None, *, types: bool = False
) -> int:
    """Show structure and decision; exit code 1 when the program is rejected.

    Raises CommandError on a catalogue or policy that is none.
    """
    tools = () if catalog is None else read_tools(catalog)
    rules = Policy() if policy is None else _policy(policy)
    code = read_source(file)
    found = read(code, tools=tools, policy=rules)
    if types:
        from pml_cli.commands.types import checked

        found = checked(code, found, tools)
    readable = _rejection(found) if isinstance(found, Rejection) else _analysis(file, found)
    if catalog is None and isinstance(found, Rejection) and found.missing_tools:
        out.note(
            "offline, only tools of a catalogue are known: pml tools --json > tools.json, "
            "then --catalog tools.json"
        )
    out.show(to_json(found), *readable)
    return FAILED if isinstance(found, Rejection) else 0


def read_tools(file: str) -> Sequence[ToolDefinition]:
    """A list of tool definitions, or an object with one under `tools`. Raises CommandError."""
    document = read_json(file)
    listed = document.get("tools") if isinstance(document, dict) else document
    if not isinstance(listed, list):
        raise CommandError(f"{file}: expected a list of tools, or an object with `tools`", USAGE)
    return [_tool(file, position, one) for position, one in enumerate(listed)]


def _tool(file: str, position: int, document: JsonValue) -> ToolDefinition:
    try:
        return ToolDefinition.model_validate(document)
    except ValidationError as error:
        raise CommandError(f"{file}: tool {position}: {_first(error)}", USAGE) from error


def _policy(file: str) -> Policy:
    try:
        return Policy.model_validate(read_json(file))
    except ValidationError as error:
        raise CommandError(f"{file}: {_first(error)}", USAGE) from error


def _first(error: ValidationError) -> str:
    fault = error.errors()[0]
    place = ".".join(str(part) for part in fault["loc"])
    return f"{place}: {fault['msg']}" if place else fault["msg"]


def _rejection(found: Rejection) -> list[RenderableType]:
    return ["[red]rejected[/]", *map(_diagnostic, found.diagnostics)]


def _analysis(file: str, found: Analysis) -> list[RenderableType]:
    verdict = found.decision.verdict
    title = file if file != "-" else "program"
    lines: list[RenderableType] = [structure_tree(found.structure, title)]
    lines += [
        f"[yellow]dynamic[/] {call.line}:{call.column} {escape(call.expression)}"
        for call in found.dynamic_calls
    ]
    lines.append(f"decision [{COLOURS[verdict]}]{verdict}[/]")
    lines += [f"  {escape(reason)}" for reason in found.decision.reasons]
    lines += map(_diagnostic, found.diagnostics)
    return lines


def _diagnostic(found: Diagnostic) -> str:
    text = f"{found.line}:{found.column} {found.severity}: {escape(found.message)}"
    if found.source_line is None:
        return text
    return f"{text}\n  [dim]{escape(found.source_line)}[/]\n  {' ' * (found.column - 1)}^"
