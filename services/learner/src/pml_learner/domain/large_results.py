"""Results that are too large for their traces, and the references in place of them."""

from collections.abc import Iterator
from typing import Final

from pydantic import JsonValue, TypeAdapter

from pml_common.contracts.executor import NestedRun
from pml_common.contracts.learner import ExecutionTrace, LargeResult
from pml_common.contracts.trace import TaskResult
from pml_learner.domain.lesson import Lesson

INLINE_BYTES: Final = 4096
"""Bytes of a result's JSON in a trace, where nothing else is set."""

_JSON: TypeAdapter[JsonValue] = TypeAdapter(JsonValue)


def trace_of(lesson: Lesson, most_bytes: int) -> ExecutionTrace:
    """The trace of a lesson, with references in place of results of more bytes of JSON."""
    trace, call = lesson.trace, lesson.call
    large = tuple(_large(trace, call, most_bytes))
    if not large:
        return trace
    away = {each.trace_id for each in large}
    return trace.model_copy(
        update={
            "result": None if trace.trace_id in away else trace.result,
            "task_results": tuple(
                task.model_copy(update={"result": None}) if task.trace_id in away else task
                for task in trace.task_results
            ),
            "large_results": large,
        }
    )


def _large(trace: ExecutionTrace, call: NestedRun | None, most_bytes: int) -> Iterator[LargeResult]:
    own = None if call is None else f"{call.node_id}.{call.occurrence}"
    if (size := _size(trace.result)) > most_bytes:
        yield LargeResult(trace_id=trace.trace_id, task_id=own, size=size)
    for task in trace.task_results:
        if (size := _size(task.result)) > most_bytes:
            yield LargeResult(trace_id=task.trace_id, task_id=_task_id(task, call), size=size)


def _task_id(task: TaskResult, call: NestedRun | None) -> str:
    """The task's id as the whole run has it, in which the calls of a nested run have its path."""
    within = "" if call is None else f"{call.node_id}/"
    return f"{within}{task.node_id}.{task.occurrence}"


def _size(result: JsonValue) -> int:
    return len(_JSON.dump_json(result))
