"""Handles `list-capabilities`."""

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.cursors import BadCursor
from pml_common.contracts.registry import CapabilityPage, ListCapabilities
from pml_registry.ports import CapabilityStore


async def on_list_capabilities(
    query: ListCapabilities, capabilities: CapabilityStore
) -> CapabilityPage:
    """Return a page of the client's scope. Raises QueryFailed `invalid` for a foreign cursor."""
    try:
        return await capabilities.page(query)
    except BadCursor as error:
        raise QueryFailed("invalid", str(error)) from error
