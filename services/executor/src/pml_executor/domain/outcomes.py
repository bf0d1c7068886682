"""One tool call: the question to the gateway, and what its answer means for the run."""

from datetime import UTC, datetime

from pydantic_core import to_json

from pml_common.contracts.error import ErrorKind, WorkflowError
from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.gateway import CallTool, ToolOutcome
from pml_executor.domain.endings import RunEnded
from pml_executor.domain.journal import Call


def question(
    command: RunWorkflow,
    call: Call,
    grant_digest: str,
    timeout_s: float,
    started: float,
    *,
    again: bool = False,
) -> CallTool:
    """What the gateway is asked; `again` where the first outcome of a repeatable call is unknown.

    A call whose start was stored by this executor has been asked for by nobody else, unless the
    executor stood still since then: it counts from when the call `started`, in Unix milliseconds,
    before that was stored.
    """
    is_first = call.start is None and not again
    return CallTool(
        scope=command.scope,
        workflow_id=command.workflow_id,
        node_id=call.node_id,
        occurrence=call.occurrence,
        attempt="again" if again else "first",
        tool=call.tool,
        args=call.args,
        grant_digest=grant_digest,
        timeout_s=max(0.001, timeout_s),
        asked_first_at=datetime.fromtimestamp(started / 1000, UTC) if is_first else None,
    )


def after_unknown(first: ToolOutcome, again: ToolOutcome) -> ToolOutcome:
    """The outcome of a call that was made again because that of the first was unknown, which
    stands unless the second one's is known."""
    return again if again.status in ("ok", "tool_error", "ask") else first


def within(outcome: ToolOutcome, max_bytes: int) -> tuple[ToolOutcome, int]:
    """The outcome and its size; one that no run can take is the tool's failure."""
    size = len(to_json(outcome.result))
    if size <= max_bytes:
        return outcome, size
    message = f"the tool answered {size} bytes, more than the {max_bytes} a run can take"
    return ToolOutcome(status="tool_error", message=message), 0


def ends_run(kind: ErrorKind, call: Call, message: str) -> RunEnded:
    """This call is where the run ends."""
    return RunEnded(
        WorkflowError(
            kind=kind,
            message=message,
            node_id=call.node_id,
            tool=call.tool,
            arguments=call.args,
        )
    )
