"""Suggestions for an intent."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import uuid4

from pml_common.bus.port import QueryClient
from pml_common.contracts import catalog
from pml_common.contracts.decision import Policy
from pml_common.contracts.registry import Discover
from pml_common.contracts.scope import Scope
from pml_gateway.domain.api.api import ExecuteRequest, ExecuteResponse

SUGGESTIONS = 10


@dataclass(frozen=True)
class Suggestions:
    """Suggests tools and capabilities instead of running anything; none that the policy of the
    caller's scope denies."""

    query_client: QueryClient
    policy_of: Callable[[Scope], Policy]

    async def suggest(
        self, scope: Scope, principal: str, request: ExecuteRequest
    ) -> ExecuteResponse:
        """Return the best matches for the request's intent. Raises QueryFailed."""
        query = Discover(
            scope=scope,
            principal=principal,
            intent=request.intent or "",
            limit=SUGGESTIONS,
            policy=self.policy_of(scope),
        )
        page = await self.query_client.request(catalog.DISCOVER, query)
        found = ExecuteResponse(status="suggestions", suggestions=page.hits, discovery_id=uuid4())
        return found.model_copy(update={"degraded": True}) if page.degraded else found
