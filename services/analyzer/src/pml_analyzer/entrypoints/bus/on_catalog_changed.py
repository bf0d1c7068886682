"""Handler of `catalog-changed`."""

from pml_analyzer.ports import Catalog
from pml_common.contracts.registry import CatalogChanged


async def on_catalog_changed(event: CatalogChanged, catalog: Catalog) -> None:
    """Invalidate the scope's cached tools; idempotent."""
    catalog.invalidate(event.scope)
