"""Handles `principal-data-deleted`."""

from collections.abc import Sequence

from pml_common.contracts.base import Message
from pml_common.contracts.gateway import PrincipalDataDeleted
from pml_learner.application.relearning import forget_principal
from pml_learner.domain.temporal_difference import TdRule
from pml_learner.ports import TraceStore


async def on_principal_data_deleted(
    deleted: PrincipalDataDeleted, traces: TraceStore, rule: TdRule
) -> Sequence[Message]:
    """Delete the principal's traces from before the deletion, and opinions; nothing follows."""
    await forget_principal(traces, deleted.scope, deleted.principal, deleted.deleted_at, rule)
    return ()
