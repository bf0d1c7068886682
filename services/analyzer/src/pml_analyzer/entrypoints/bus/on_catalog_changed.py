"""The catalogue changed: what was read of it no longer holds."""

from pml_analyzer.ports import Catalog
from pml_common.contracts.registry import CatalogChanged


async def on_catalog_changed(event: CatalogChanged, catalog: Catalog) -> None:
    """Forget the scope's tools; hearing it twice forgets them twice."""
    catalog.drop(event.scope)
