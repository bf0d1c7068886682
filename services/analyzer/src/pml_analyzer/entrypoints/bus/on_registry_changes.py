"""Handlers of the registry's changes: they invalidate cached replies."""

from pml_analyzer.ports import Capabilities, Catalog
from pml_common.contracts.registry import CapabilityChanged, CatalogChanged


async def on_catalog_changed(event: CatalogChanged, catalog: Catalog) -> None:
    """Invalidate the scope's cached tools; idempotent."""
    catalog.invalidate(event.scope)


async def on_capability_changed(event: CapabilityChanged, capabilities: Capabilities) -> None:
    """Invalidate the scope's cached capabilities; new statistics invalidate nothing, unless they
    change the health, of which programs are warned."""
    if event.change not in ("listed", "learned") or event.health is not None:
        capabilities.invalidate(event.scope)
