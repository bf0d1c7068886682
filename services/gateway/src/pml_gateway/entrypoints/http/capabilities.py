"""GET /api/capabilities, GET and PATCH /api/capabilities/{id or name}."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import ConfigDict

from pml_common.bus.port import QueryClient
from pml_common.contracts import catalog
from pml_common.contracts.caching import CacheSettings
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.registry import (
    CapabilityPage,
    ListCapabilities,
    ResolveCapability,
    SetCachePolicy,
)
from pml_gateway.application.cached_results import ResultCache
from pml_gateway.domain.api.list_cursors import sole_cursor
from pml_gateway.domain.api.request import Request
from pml_gateway.entrypoints.http.routing import (
    CONFLICT,
    NOT_FOUND,
    CallerOf,
    ListCursor,
    Offset,
    api_router,
)
from pml_gateway.ports import Caller


class CachePatch(CacheSettings):
    """Whether calls with the same arguments return the result of an earlier run. `memoize`: for
    `ttl_s` seconds after the run, by default 3600, at most a week. `persistent`: until the code or
    this setting changes, or for `ttl_s`. `force` is required for capabilities that call tools not
    marked read-only: a cached result skips the changes that these would make."""

    model_config = ConfigDict(extra="forbid")


class CapabilityPatch(Request):
    """Changes to a capability."""

    cache: CachePatch


def capability_routes(
    query_client: QueryClient, cache: ResultCache, caller_of: CallerOf
) -> APIRouter:
    """Routes that read capabilities and set their cache policies."""
    router = api_router("capabilities")

    @router.get("/capabilities", operation_id="list_capabilities")
    async def list_capabilities(
        caller: Annotated[Caller, Depends(caller_of)],
        include_unlisted: bool = False,
        limit: Annotated[int, Query(ge=1, le=200)] = 50,
        offset: Offset = 0,
        cursor: ListCursor = None,
    ) -> CapabilityPage:
        """List capabilities, the most used first; unlisted ones have not succeeded yet."""
        query = ListCapabilities(
            scope=caller.scope,
            principal=caller.principal,
            include_unlisted=include_unlisted,
            limit=limit,
            offset=offset,
            cursor=sole_cursor(cursor, offset),
        )
        return await query_client.request(catalog.LIST_CAPABILITIES, query)

    @router.get("/capabilities/{reference}", operation_id="get_capability", responses=NOT_FOUND)
    async def get_capability(
        reference: str, caller: Annotated[Caller, Depends(caller_of)]
    ) -> CapabilityRecord:
        """Return a capability by id or name."""
        query = ResolveCapability(
            scope=caller.scope,
            principal=caller.principal,
            reference=reference,
            count_dependencies=True,
        )
        return await query_client.request(catalog.RESOLVE_CAPABILITY, query)

    @router.patch(
        "/capabilities/{reference}",
        operation_id="change_capability",
        responses={**NOT_FOUND, **CONFLICT},
    )
    async def change_capability(
        reference: str, body: CapabilityPatch, caller: Annotated[Caller, Depends(caller_of)]
    ) -> CapabilityRecord:
        """Set the cache policy of a capability. A change invalidates all its cached results;
        setting the same policy again does not."""
        query = SetCachePolicy(
            scope=caller.scope,
            principal=caller.principal,
            reference=reference,
            cache=body.cache,
        )
        changed = await query_client.request(catalog.SET_CACHE_POLICY, query)
        await cache.drop_old(changed)
        return changed

    return router
