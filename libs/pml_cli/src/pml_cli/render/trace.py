"""Traces as a tree with durations."""

from collections.abc import Sequence

from rich.markup import escape
from rich.tree import Tree

from pml_cli.render.path import path_line
from pml_cli.render.values import milliseconds, short
from pml_common.contracts.learner import ExecutionTrace


def trace_tree(traces: Sequence[ExecutionTrace]) -> Tree:
    """Each trace with its calls under it, in the order they started."""
    tree = Tree("[bold]trace")
    for trace in traces:
        branch = tree.add(_head(trace))
        branch.add(f"[dim]path[/] {path_line(trace.executed_path, trace.decisions)}")
        for call in sorted(trace.task_results, key=lambda call: call.started_at):
            mark = "[green]✓[/]" if call.success else "[red]✗[/]"
            after = milliseconds(call.started_at - trace.executed_at)
            said = call.result if call.success or call.error is None else call.error.message
            branch.add(
                f"{mark} [bold]{escape(call.node_id)}[/] {escape(call.tool)} "
                f"[cyan]{milliseconds(call.duration_ms)}[/] [dim]at {after}[/] "
                f"{'[yellow]mock[/] ' if call.mocked else ''}{escape(short(said))}"
            )
    return tree


def _head(trace: ExecutionTrace) -> str:
    mark = "[green]✓[/]" if trace.success else "[red]✗[/]"
    mark += " [yellow]dry run[/]" if trace.dry_run else ""
    why = "" if trace.error is None else f" [red]{escape(short(trace.error.message))}[/]"
    return (
        f"{mark} {escape(trace.intent or f'capability {trace.capability_id}')} "
        f"[cyan]{milliseconds(trace.duration_ms)}[/] "
        f"[dim]priority {trace.priority:.2f}[/]{why}"
    )
