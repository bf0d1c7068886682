"""Commands that read state."""

from collections.abc import Mapping
from typing import cast

from pydantic import TypeAdapter
from rich.console import Group, RenderableType
from rich.table import Table

from pml_cli.client import Client, Json
from pml_cli.commands.execution import workflow_id
from pml_cli.markup import escape
from pml_cli.output import Output
from pml_cli.render.caching import cached_how
from pml_cli.render.calls import call_lines
from pml_cli.render.console import console_lines, line_of
from pml_cli.render.drawn import definition_tree, invocation_tree, left_out
from pml_cli.render.layers import layer_lines
from pml_cli.render.learning import learned_paths
from pml_cli.render.sources import source_text
from pml_cli.render.structure import structure_tree
from pml_cli.render.trace import trace_tree
from pml_cli.render.use import LATEST, health_of, others_text, rate_text, use_text
from pml_cli.render.values import short
from pml_cli.render.versions import version_line
from pml_common.contracts.capability import Learning, Usage
from pml_common.contracts.learner import ExecutionTrace
from pml_common.contracts.source import CapabilitySource
from pml_common.contracts.structure import StaticStructure

_SOURCE: TypeAdapter[CapabilitySource] = TypeAdapter(CapabilitySource)


def capabilities(client: Client, out: Output, limit: int | None) -> None:
    """Learned capabilities, most used first."""
    answer = client.get("/api/capabilities", limit=limit)
    table = Table("name", "runs", "success", "not judged", "health", "description", box=None)
    for one in cast(list[Json], answer["capabilities"]):
        usage = Usage.model_validate(one["usage"])
        text = escape(short(str(one.get("description") or ""), 70))
        health = health_of(one)
        facts = str(usage.count), rate_text(usage), others_text(usage), health
        table.add_row(escape(str(one["name"])), *facts, text)
    out.show(answer, table)
    out.remarks([LATEST])


def trace(client: Client, out: Output, workflow: str) -> None:
    """A workflow's structure, learning, and traces with durations."""
    wanted = workflow_id(workflow)
    found = client.get(f"/api/workflows/{wanted}")
    traces = client.get(f"/api/workflows/{wanted}/trace")
    parsed = [ExecutionTrace.model_validate(one) for one in cast(list[Json], traces["traces"])]
    readable: list[RenderableType] = [f"[bold]{found['status']}[/] workflow {wanted}"]
    if found.get("structure"):
        structure = StaticStructure.model_validate(found["structure"])
        readable.append(structure_tree(structure, "structure"))
    if found.get("error"):
        error = cast(Json, found["error"])
        readable.append(f"[red]{error['kind']}[/]: {escape(str(error['message']))}")
    approval = cast(Json, found.get("approval") or {})
    if found["status"] == "approval_required" and approval:
        lines = [*layer_lines(approval), *call_lines(approval)]
        readable += ["[yellow]waits for the approval of[/]", *lines]
    readable += console_lines(found)
    readable.append(trace_tree(parsed) if parsed else "[dim]no trace recorded yet[/]")
    out.show({"workflow": found, **traces}, Group(*readable))
    out.remarks(cast(list[str], found.get("notices") or []))


def console(
    client: Client, out: Output, workflow: str, limit: int | None, offset: int | None
) -> None:
    """A page of the lines that a program wrote to its console, the oldest first."""
    path = f"/api/workflows/{workflow_id(workflow)}/console"
    page = client.get(path, limit=limit, offset=offset)
    lines, first = cast(list[Mapping[str, str]], page["lines"]), cast(int, page["offset"])
    total, lost = cast(int, page["total"]), cast(int, page["lost"])
    out.show(page, *([line_of(each) for each in lines] or ["[dim]no lines[/]"]))
    if lost:
        out.remarks([f"{lost:,} earlier lines are kept in the journal alone"])
    if len(lines) < total:
        out.remarks(
            [f"lines {first + 1:,} to {first + len(lines):,} of {total:,}"] if lines else []
        )
    if page.get("next_offset") is not None:
        out.remarks([f"next page: the same command with --offset {page['next_offset']}"])


def dag(client: Client, out: Output, workflow: str) -> None:
    """A run as a DAG: every call with its dependencies and arguments."""
    answer = client.get(f"/api/workflows/{workflow_id(workflow)}/dag")
    drawn = cast(Json, answer.get("dag") or {"tasks": []})
    table = Table("task", "tool", "waits for", "arguments", box=None)
    for task in cast(list[Json], drawn["tasks"]):
        waits = ", ".join(cast(list[str], task["depends_on"]))
        given = short(task["arguments"], 70)
        table.add_row(*map(escape, (str(task["id"]), str(task["tool"]), waits, given)))
    failed = ", ".join(cast(list[str], answer["left_out"]))
    note = f"[dim]failed and left out: {escape(failed)}[/]" if failed else ""
    out.show(answer, table, *([note] if note else []))


def capability(client: Client, out: Output, wanted: str) -> None:
    """A capability with its structure and learned paths."""
    found = client.get(f"/api/capabilities/{wanted}")
    structure = StaticStructure.model_validate(found["structure"])
    learning = Learning.model_validate(found["learning"])
    title = f"{found['name']}  {found.get('description') or ''}"
    cache = cached_how(cast(Json, found["cache"]))
    source = source_text(_SOURCE.validate_python(found.get("source") or {"type": "code"}))
    usage = Usage.model_validate(found["usage"])
    out.show(
        found,
        structure_tree(structure, title),
        learned_paths(learning),
        f"{health_of(found)}  {rate_text(usage)}  [dim]{use_text(usage)}[/]",
        f"[dim]{escape(version_line(found))}[/]",
        f"[dim]cache: {cache}[/]",
        f"[dim]source: {escape(source)}[/]",
    )
    out.remarks(cast(list[str], found.get("notices") or []))


def definition(client: Client, out: Output, wanted: str) -> None:
    """A capability's tools and capabilities, each once, with what leads from one to the other."""
    view = client.get(f"/api/capabilities/{wanted}/definition")
    out.show(view, definition_tree(view), *filter(None, [left_out(view)]))


def invocations(client: Client, out: Output, wanted: str, limit: int | None) -> None:
    """A capability's newest runs with all their calls in time."""
    view = client.get(f"/api/capabilities/{wanted}/invocations", limit=limit)
    out.show(view, invocation_tree(view), *filter(None, [left_out(view)]))
