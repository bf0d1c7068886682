"""Which capabilities are there?"""

from pml_common.contracts.registry import CapabilityPage, ListCapabilities
from pml_registry.ports import CapabilityStore


async def on_list_capabilities(
    query: ListCapabilities, capabilities: CapabilityStore
) -> CapabilityPage:
    """One page of the client's own scope."""
    return await capabilities.page(query)
