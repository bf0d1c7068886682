"""Outcomes of workflows, asked of the gateway."""

from uuid import UUID

from typing_extensions import override

from pml_common.bus.port import QueryClient
from pml_common.contracts import catalog
from pml_common.contracts.gateway import AskOutcome, WorkflowOutcome
from pml_common.contracts.scope import Scope
from pml_registry.ports import WorkflowOutcomes


class BusWorkflowOutcomes(WorkflowOutcomes):
    """Sends a query for each."""

    def __init__(self, query_client: QueryClient) -> None:
        self._query_client = query_client

    @override
    async def outcome_of(self, scope: Scope, workflow_id: UUID) -> WorkflowOutcome:
        query = AskOutcome(scope=scope, workflow_id=workflow_id)
        return await self._query_client.request(catalog.ASK_OUTCOME, query)
