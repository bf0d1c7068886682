"""Handles `workflow-data-deleted`."""

from collections.abc import Sequence

from pml_common.contracts.base import Message
from pml_common.contracts.gateway import WorkflowDataDeleted
from pml_learner.application.relearning import delete_workflow
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.ports import TraceStore


async def on_workflow_data_deleted(
    deleted: WorkflowDataDeleted, traces: TraceStore, rule: TdRule
) -> Sequence[Message]:
    """Delete the traces of the workflow, also those that come later; nothing follows."""
    await delete_workflow(traces, deleted.scope, deleted.workflow_id, rule)
    return ()
