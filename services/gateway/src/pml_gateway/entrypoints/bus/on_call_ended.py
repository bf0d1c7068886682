"""Handlers of `call-ended`: the workflow of a direct call ends."""

from collections.abc import Sequence

from pml_common.bus.port import Handled
from pml_common.contracts.direct_call import CallEnded
from pml_gateway.application.tool_calls import ToolCalls
from pml_gateway.application.workflow_service import WorkflowService


async def on_call_ended(ended: CallEnded, *, workflows: WorkflowService) -> None:
    """Answer the callers who wait here for a call of another gateway; its end is stored later."""
    await workflows.hear_end(ended.run)


async def on_calls_ended(
    ended: Sequence[CallEnded], *, workflows: WorkflowService, calls: ToolCalls
) -> Handled:
    """Store the workflows with their ends, and the calls in the ledger."""
    await calls.store_ended(ended)
    await workflows.end_calls(ended)
    return Handled()
