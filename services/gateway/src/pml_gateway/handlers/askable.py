"""Which tools a person may be asked about while a program runs, as things stand now."""

from collections.abc import Mapping
from itertools import chain
from uuid import UUID

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.scope import Scope
from pml_gateway.domain.parking import askable_among, reaches_unseen
from pml_gateway.domain.workflow import Workflow
from pml_gateway.ports import KnownTools, WorkflowStore


def askable_of(
    workflow: Workflow, analysis: ExecutionAnalyzed | None, tools: KnownTools
) -> Mapping[str, str]:
    """Those of a workflow whose program was analysed so."""
    listed = chain.from_iterable(tools.list_tools().values())
    return askable_among(workflow.requested.policy, analysis, listed, tools.hash_of)


async def askable_of_stored(
    scope: Scope,
    workflow_id: UUID,
    workflows: WorkflowStore,
    tools: KnownTools,
    analysis: ExecutionAnalyzed | None = None,
) -> Mapping[str, str]:
    """Those of a workflow that is kept; `analysis` where it is not kept yet. Raises
    StorageUnavailable."""
    if analysis is not None and not reaches_unseen(analysis):
        return {}
    workflow = await workflows.get(scope, workflow_id)
    if workflow is None:
        return {}
    return askable_of(workflow, analysis or workflow.analysis, tools)
