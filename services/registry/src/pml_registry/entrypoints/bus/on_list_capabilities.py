"""Handles `list-capabilities`."""

from pml_common.contracts.registry import CapabilityPage, ListCapabilities
from pml_registry.ports import CapabilityStore


async def on_list_capabilities(
    query: ListCapabilities, capabilities: CapabilityStore
) -> CapabilityPage:
    """Return a page of the client's scope."""
    return await capabilities.page(query)
