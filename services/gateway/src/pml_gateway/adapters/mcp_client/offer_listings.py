"""Offers of an upstream server, as one connection lists them."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Protocol

import anyio
from mcp import Client, MCPError
from mcp_types import PaginatedResult
from pydantic import ValidationError

from pml_common.contracts.fault_words import text_of
from pml_common.contracts.tool import JsonObject
from pml_gateway.adapters.mcp_client.listings import set_aside_of
from pml_gateway.domain.servers.offers import Offers, distinct

log = logging.getLogger(__name__)

_MAX_PAGES: Final = 100
_WITHIN_S: Final = 5.0
"""Time for all listings: tools wait for them at the start of a connection."""


class _Lists(Protocol):
    def __call__(self, *, cursor: str | None = None) -> Awaitable[PaginatedResult]: ...


Warn = Callable[[str], None]


async def list_offers(name: str, client: Client, warn: Warn) -> Offers:
    """Return all that a server offers; of what it does not list in time, nothing."""
    can = client.server_capabilities
    resources = templates = prompts = ()
    if can.resources is not None:
        resources = await _all(name, client.list_resources, "resources", "uri", warn)
        templates = await _all(
            name, client.list_resource_templates, "resource_templates", "uriTemplate", warn
        )
    if can.prompts is not None:
        prompts = await _all(name, client.list_prompts, "prompts", "name", warn)
    return Offers(resources, templates, prompts)


async def _all(
    name: str, listing: _Lists, field: str, key: str, warn: Warn
) -> tuple[JsonObject, ...]:
    try:
        with anyio.fail_after(_WITHIN_S):
            listed = await _pages(name, listing, field, warn)
    except (MCPError, ValidationError, TimeoutError) as error:
        why = text_of(error) or "no answer in time"
        warn(f"its {field.replace('_', ' ')} cannot be listed: {why}")
        return ()
    kept, faults = distinct(listed, key)
    for fault in faults:
        warn(fault)
    return kept


async def _pages(name: str, listing: _Lists, field: str, warn: Warn) -> Sequence[JsonObject]:
    listed: list[JsonObject] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = await listing(cursor=cursor)
        items: list[Any] = getattr(page, field)
        listed += [item.model_dump(mode="json", by_alias=True, exclude_none=True) for item in items]
        for fault in set_aside_of(page):
            warn(fault)
        cursor = page.next_cursor
        if cursor is None:
            return listed
    log.warning("%s lists more than %d pages of %s: cut", name, _MAX_PAGES, field)
    return listed
