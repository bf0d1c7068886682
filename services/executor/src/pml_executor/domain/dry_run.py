"""What answers a call in a dry run (B10)."""

from collections.abc import Sequence

from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.trace import ToolStart, TraceEvent


def mock_of(
    command: RunWorkflow, start: ToolStart, entries: Sequence[TraceEvent]
) -> ToolOutcome | None:
    """The mock that answers this call, or None: the call is made.

    `entries` is the journal with `start` in it. Which of the tool's mocks it is depends on the
    tool's earlier calls there and on nothing else, so that a replay gets the same.
    """
    mocks = command.mocks.get(start.tool)
    if not mocks:
        return None
    calls = [each.trace_id for each in entries if _calls(each, start.tool)]
    turn = min(calls.index(start.trace_id), len(mocks) - 1)
    return ToolOutcome(status="ok", result=mocks[turn])


def _calls(entry: TraceEvent, tool: str) -> bool:
    return isinstance(entry, ToolStart) and entry.tool == tool
