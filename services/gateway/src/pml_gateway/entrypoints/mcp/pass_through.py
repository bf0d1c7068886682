"""MCP `resources/*`, `prompts/*` and `completion/complete`, of upstream servers."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, cast

from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.caching import CacheableMethod, CacheHint
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CompleteRequestParams,
    GetPromptRequestParams,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    RequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
    Unavailable,
)
from pml_gateway.domain.api.offered import Offered
from pml_gateway.domain.api.pages import page_of
from pml_gateway.domain.servers.tool_meta import passed_meta
from pml_gateway.ports import Caller, OfferedToCallers, ServerRefused

Context = ServerRequestContext[Any, Any]
CallerOf = Callable[[Context], Awaitable[Caller]]
Answer = dict[str, Any]

_UNKNOWN_TTL: Final = CacheHint(ttl_ms=0, scope="private")
CACHE_HINTS: Final[Mapping[CacheableMethod, CacheHint]] = {
    "resources/list": _UNKNOWN_TTL,
    "resources/templates/list": _UNKNOWN_TTL,
    "resources/read": _UNKNOWN_TTL,
    "prompts/list": _UNKNOWN_TTL,
}
"""Of answers that do not say it themselves."""

RESOURCE_NOT_FOUND: Final = -32002
"""In revisions before 2026-07-28."""


class McpOffers:
    """Handlers of what upstream servers offer beside tools."""

    def __init__(self, offers: OfferedToCallers, caller_of: CallerOf) -> None:
        self._offers = offers
        self._caller_of = caller_of

    def register(self, server: Server[Any]) -> None:
        """Have a server answer the methods."""
        server.add_request_handler("resources/list", PaginatedRequestParams, self._resources)
        server.add_request_handler(
            "resources/templates/list", PaginatedRequestParams, self._templates
        )
        server.add_request_handler("resources/read", ReadResourceRequestParams, self._read)
        server.add_request_handler("prompts/list", PaginatedRequestParams, self._prompts)
        server.add_request_handler("prompts/get", GetPromptRequestParams, self._prompt)
        server.add_request_handler("completion/complete", CompleteRequestParams, self._complete)

    async def _resources(self, ctx: Context, params: PaginatedRequestParams) -> Answer:
        return await self._list(ctx, params, "resources", Offered.resources, "uri")

    async def _templates(self, ctx: Context, params: PaginatedRequestParams) -> Answer:
        return await self._list(ctx, params, "resourceTemplates", Offered.templates, "uriTemplate")

    async def _prompts(self, ctx: Context, params: PaginatedRequestParams) -> Answer:
        return await self._list(ctx, params, "prompts", Offered.prompts, "name")

    async def _list(
        self,
        ctx: Context,
        params: PaginatedRequestParams,
        field: str,
        listed: Callable[[Offered], list[JsonObject]],
        key: str,
    ) -> Answer:
        caller = await self._caller_of(ctx)
        try:
            page, cursor = page_of(listed(self._offers.offered(caller.scope)), key, params.cursor)
        except InvalidRequest as error:
            raise MCPError(INVALID_PARAMS, str(error)) from error
        listing = {field: page, "resultType": "complete"}
        return listing if cursor is None else {**listing, "nextCursor": cursor}

    async def _read(self, ctx: Context, params: ReadResourceRequestParams) -> Answer:
        caller, uri = await self._caller_of(ctx), str(params.uri)
        missing = INVALID_PARAMS if _is_modern(ctx) else RESOURCE_NOT_FOUND
        more = _rest(params, "uri")
        asked = self._offers.read(caller, uri, more, _capabilities(ctx))
        return await _answer(ctx, asked, {"uri": uri}, missing)

    async def _prompt(self, ctx: Context, params: GetPromptRequestParams) -> Answer:
        caller = await self._caller_of(ctx)
        more = _rest(params, "name")
        asked = self._offers.prompt(caller, params.name, more, _capabilities(ctx))
        return await _answer(ctx, asked, {"name": params.name}, INVALID_PARAMS)

    async def _complete(self, ctx: Context, params: CompleteRequestParams) -> Answer:
        caller = await self._caller_of(ctx)
        ref: JsonObject = params.ref.model_dump(mode="json", by_alias=True, exclude_none=True)
        asked = self._offers.complete(caller, ref, _rest(params, "ref"))
        return await _answer(ctx, asked, {}, INVALID_PARAMS)


async def _answer(
    ctx: Context, asked: Awaitable[JsonObject], data: Mapping[str, Any], missing: int
) -> Answer:
    """Return the answer of a server. Raises MCPError, with `data`, and the code `missing` where no
    server offers what was asked for."""
    try:
        answer = cast(Answer, await asked)
    except (NotFound, Conflict) as error:
        raise MCPError(missing, str(error), dict(data)) from error
    except Forbidden as error:
        raise MCPError(INVALID_REQUEST, str(error), dict(data)) from error
    except ServerRefused as error:
        raise MCPError(error.code, str(error), error.data or dict(data)) from error
    except Unavailable as error:
        raise MCPError(INTERNAL_ERROR, str(error), dict(data)) from error
    if answer.get("resultType") == "input_required" and not _is_modern(ctx):
        raise MCPError(
            MISSING_REQUIRED_CLIENT_CAPABILITY,
            "the server asks for input, which this revision of the protocol cannot carry",
        )
    passed = {"resultType": "complete", **answer, "_meta": passed_meta(answer.get("_meta"))}
    return passed if passed["_meta"] else {k: v for k, v in passed.items() if k != "_meta"}


def _rest(params: RequestParams, named: str) -> JsonObject:
    return params.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={named, "meta"})


def _capabilities(ctx: Context) -> JsonObject:
    """Return what the client can be asked for in its answer's place."""
    declared = ctx.session.client_capabilities
    if declared is None or not _is_modern(ctx):
        return {}
    return declared.model_dump(mode="json", by_alias=True, exclude_none=True)


def _is_modern(ctx: Context) -> bool:
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
