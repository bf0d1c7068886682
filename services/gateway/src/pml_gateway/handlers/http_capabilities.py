"""GET /api/capabilities and /api/capabilities/{id or name}."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from pml_common.bus.port import Asker
from pml_common.contracts import catalog
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.registry import CapabilityPage, ListCapabilities, ResolveCapability
from pml_gateway.handlers.http_callers import NO_SUCH, CallerOf, api_router
from pml_gateway.ports import Caller


def capability_routes(asker: Asker, caller_of: CallerOf) -> APIRouter:
    """Look at what was learned."""
    router = api_router("capabilities")

    @router.get("/capabilities", operation_id="list_capabilities")
    async def list_capabilities(
        caller: Annotated[Caller, Depends(caller_of)],
        include_unlisted: bool = False,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        offset: Annotated[int, Query(ge=0)] = 0,
    ) -> CapabilityPage:
        """Capabilities, the most used first; unlisted ones never ran well so far."""
        query = ListCapabilities(
            scope=caller.scope, include_unlisted=include_unlisted, limit=limit, offset=offset
        )
        return await asker.ask(catalog.LIST_CAPABILITIES, query)

    @router.get("/capabilities/{reference}", operation_id="get_capability", responses=NO_SUCH)
    async def get_capability(
        reference: str, caller: Annotated[Caller, Depends(caller_of)]
    ) -> CapabilityRecord:
        """One capability, by id or name."""
        query = ResolveCapability(scope=caller.scope, reference=reference)
        return await asker.ask(catalog.RESOLVE_CAPABILITY, query)

    return router
