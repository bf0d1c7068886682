"""A run's capability calls, each as the run that it would have been by itself."""

from collections.abc import Iterator

from pml_common.contracts import ids
from pml_common.contracts.executor import NestedRun, RunFinished


def own_runs(run: RunFinished) -> Iterator[tuple[RunFinished, NestedRun | None]]:
    """Yield the run, then each call of a capability as its own run with the call; callers first."""
    yield run, None
    for call in run.nested:
        yield _as_own_run(run, call), call


def _as_own_run(run: RunFinished, call: NestedRun) -> RunFinished:
    """Convert a call into the run that it would have been by itself."""
    prefix = f"{call.node_id}/"
    tasks = tuple(
        task.model_copy(update={"node_id": task.node_id.removeprefix(prefix)})
        for task in run.task_results
        if task.parent_trace_id == call.trace_id
    )
    return run.model_copy(
        update={
            "event_id": ids.effect_id(run.event_id, f"nested/{call.trace_id}"),
            "capability": call.capability,
            "intent": None,
            "success": call.success,
            "result": call.result,
            "error": call.error,
            "executed_path": call.executed_path,
            "decisions": call.decisions,
            "task_results": tasks,
            "nested": (),
            "trace_id": call.trace_id,
            "started_at": call.started_at,
            "duration_ms": call.duration_ms,
            "void": False,
        }
    )
