"""Runs with large results."""

from pydantic import JsonValue

from pml_common.contracts.executor import NestedRun, RunFinished
from services.learner.tests.support.builders import finished_run, nested_run, tool_call

BIG = "x" * 5000


def run_with(result: JsonValue, inner: JsonValue = None) -> RunFinished:
    """Build a run whose call, and whose capability's call, have such results."""
    first = finished_run()
    nested: NestedRun = nested_run(first.trace_id, "cd" * 32, "n2").model_copy(
        update={"result": inner}
    )
    own = tool_call("fs:read", 0, 1, parent=first.trace_id).model_copy(update={"result": result})
    inside = tool_call("fs:read", 2, 3, "n2/n1", parent=nested.trace_id)
    calls = (own, inside.model_copy(update={"result": inner}))
    return first.model_copy(update={"result": result, "nested": (nested,), "task_results": calls})
