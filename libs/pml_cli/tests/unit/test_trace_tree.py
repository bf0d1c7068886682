"""Rendering of traces."""

from uuid import UUID, uuid5

from rich.console import Console

from pml_cli.render.trace import trace_tree
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.learner import ExecutionTrace, LargeResult
from pml_common.contracts.trace import TaskResult

_NAMES = UUID("0e3c9a34-9c47-52d5-8ad4-3b0a9f3f9a0c")


def _trace(
    trace: str, parent: str | None, node_id: str | None, at: float, *calls: tuple[str, float]
) -> ExecutionTrace:
    identity = uuid5(_NAMES, trace)
    return ExecutionTrace(
        trace_id=identity,
        parent_trace_id=None if parent is None else uuid5(_NAMES, parent),
        node_id=node_id,
        name=None if parent is None else trace,
        capability_id=identity,
        workflow_id=_NAMES,
        intent=None if parent else "look around",
        executed_at=at,
        success=trace != "b:bad",
        duration_ms=5,
        error=WorkflowError(kind="user_error", message="broken") if trace == "b:bad" else None,
        executed_path=("n1",),
        decisions=(),
        task_results=tuple(
            TaskResult(
                node_id="n1",
                occurrence=0,
                tool=tool,
                args={},
                success=True,
                result="ok",
                trace_id=uuid5(identity, tool),
                started_at=started,
                duration_ms=1,
            )
            for tool, started in calls
        ),
        priority=0.5,
    )


def _lines(*traces: ExecutionTrace) -> list[str]:
    console = Console(width=120, no_color=True)
    with console.capture() as captured:
        console.print(trace_tree(traces))
    return [line.rstrip() for line in captured.get().splitlines()]


def test_capabilities_are_nested_under_their_callers_in_start_order() -> None:
    root = _trace("root", None, None, 100, ("fs:first", 101), ("fs:last", 108))
    outer = _trace("a:outer", "root", "n2", 102, ("fs:inside", 103))
    bad = _trace("b:bad", "a:outer", "n2/n7", 104)
    assert _lines(root, bad, outer) == [
        "trace",
        "└── ✓ look around 5.0 ms priority 0.50",
        "    ├── path n1",
        "    ├── ✓ n1 fs:first 1.0 ms at 1.0 ms ok",
        "    ├── ✓ n2 capability a:outer 5.0 ms at 2.0 ms null",
        "    │   ├── path n1",
        "    │   ├── ✓ n1 fs:inside 1.0 ms at 1.0 ms ok",
        "    │   └── ✗ n7 capability b:bad 5.0 ms at 2.0 ms broken",
        "    │       └── path n1",
        "    └── ✓ n1 fs:last 1.0 ms at 8.0 ms ok",
    ]


def test_a_trace_without_its_caller_is_a_root() -> None:
    assert _lines(_trace("a:alone", "elsewhere", "n2", 1))[1].startswith("└── ✓ capability a:alone")


def test_a_dry_run_and_its_mocks_are_marked() -> None:
    wet = _trace("root", None, None, 100, ("fs:write", 101))
    (task,) = wet.task_results
    mocked = (task.model_copy(update={"mocked": True}),)
    lines = _lines(wet.model_copy(update={"dry_run": True, "task_results": mocked}))
    assert lines[1] == "└── ✓ dry run look around 5.0 ms priority 0.50"
    assert lines[-1] == "    └── ✓ n1 fs:write 1.0 ms at 1.0 ms mock ok"


def test_large_results_are_shown_by_their_size() -> None:
    root = _trace("root", None, None, 100, ("fs:read", 101))
    nested = _trace("a:outer", "root", "n2", 102)
    of_task = LargeResult(trace_id=root.task_results[0].trace_id, size=9000, expired=True)
    own, inner = (LargeResult(trace_id=each.trace_id, size=8000) for each in (root, nested))
    lines = _lines(
        root.model_copy(update={"large_results": (own, of_task)}),
        nested.model_copy(update={"large_results": (inner,)}),
    )
    assert lines[3:6] == [
        "    ├── result 8000 bytes, with the workflow",
        "    ├── ✓ n1 fs:read 1.0 ms at 1.0 ms 9000 bytes, with the workflow, expired",
        "    └── ✓ n2 capability a:outer 5.0 ms at 2.0 ms 8000 bytes, with the workflow",
    ]
