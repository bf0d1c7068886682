"""Rendering of traces as a tree with durations."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from rich.tree import Tree

from pml_cli.markup import escape
from pml_cli.render.path import path_line
from pml_cli.render.values import milliseconds, short
from pml_common.contracts.learner import ExecutionTrace, LargeResult
from pml_common.contracts.trace import TaskResult


def trace_tree(traces: Sequence[ExecutionTrace]) -> Tree:
    """Each trace with its calls nested in start order: tools, and capabilities with their own
    calls."""
    tree = Tree("[bold]trace")
    known = {trace.trace_id for trace in traces}
    inside: dict[UUID | None, list[ExecutionTrace]] = {}
    for trace in traces:
        parent = trace.parent_trace_id if trace.parent_trace_id in known else None
        inside.setdefault(parent, []).append(trace)
    for trace in inside.get(None, ()):
        _add(tree, trace, inside, _head(trace))
    return tree


def _add(
    tree: Tree,
    trace: ExecutionTrace,
    inside: Mapping[UUID | None, Sequence[ExecutionTrace]],
    head: str,
) -> None:
    branch = tree.add(head)
    branch.add(f"[dim]path[/] {path_line(trace.executed_path, trace.decisions)}")
    made = [
        *((call.started_at, call) for call in trace.task_results),
        *((one.executed_at, one) for one in inside.get(trace.trace_id, ())),
    ]
    large = {each.trace_id: _large(each) for each in trace.large_results}
    if trace.trace_id in large and trace.node_id is None:
        branch.add(f"[dim]result[/] {large[trace.trace_id]}")
    for began, each in sorted(made, key=lambda one: one[0]):
        after = milliseconds(began - trace.executed_at)
        if isinstance(each, ExecutionTrace):
            _add(branch, each, inside, _nested(each, after))
        else:
            branch.add(_called(each, after, large.get(each.trace_id)))


def _large(large: LargeResult) -> str:
    gone = ", expired" if large.expired else ""
    return f"{large.size} bytes, with the workflow{gone}"


def _called(call: TaskResult, after: str, large: str | None) -> str:
    mark = "[green]✓[/]" if call.success else "[red]✗[/]"
    said = call.result if call.success or call.error is None else call.error.message
    said = large or said
    return (
        f"{mark} [bold]{escape(call.node_id)}[/] {escape(call.tool)} "
        f"[cyan]{milliseconds(call.duration_ms)}[/] [dim]at {after}[/] "
        f"{'[yellow]mock[/] ' if call.mocked else ''}{escape(short(said))}"
    )


def _nested(trace: ExecutionTrace, after: str) -> str:
    mark = "[green]✓[/]" if trace.success else "[red]✗[/]"
    said = trace.result if trace.success or trace.error is None else trace.error.message
    own = [_large(each) for each in trace.large_results if each.trace_id == trace.trace_id]
    said = own[0] if own else said
    node = (trace.node_id or "").rpartition("/")[2]
    return (
        f"{mark} [bold]{escape(node)}[/] capability {escape(trace.name or '')} "
        f"[cyan]{milliseconds(trace.duration_ms)}[/] [dim]at {after}[/] {escape(short(said))}"
    )


def _head(trace: ExecutionTrace) -> str:
    mark = "[green]✓[/]" if trace.success else "[red]✗[/]"
    mark += " [yellow]dry run[/]" if trace.dry_run else ""
    why = "" if trace.error is None else f" [red]{escape(short(trace.error.message))}[/]"
    return (
        f"{mark} {escape(trace.intent or f'capability {trace.name or trace.capability_id}')} "
        f"[cyan]{milliseconds(trace.duration_ms)}[/] "
        f"[dim]priority {trace.priority:.2f}[/]{why}"
        f"{f' [dim]fault of the {trace.fault}[/]' if trace.fault else ''}"
    )
