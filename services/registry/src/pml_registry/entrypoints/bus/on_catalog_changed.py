"""Handles `catalog-changed`."""

from collections.abc import Sequence

from pml_common.contracts.dependencies import GraphChanged
from pml_common.contracts.registry import CatalogChanged
from pml_registry.application.graphs import Provides, graph_changed


async def on_catalog_changed(changed: CatalogChanged, provides: Provides) -> Sequence[GraphChanged]:
    """Compute the provides edges of the changed tools; a redelivery finds nothing to compute."""
    await provides.refresh(changed.scope)
    return [graph_changed(changed.scope, changed.event_id)]
