"""Handles `resolve-capability`."""

from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.registry import ResolveCapability
from pml_registry.application.resolution import Resolution
from pml_registry.domain.visibility import Viewer


async def on_resolve_capability(
    query: ResolveCapability, resolution: Resolution
) -> CapabilityRecord:
    """Return the capability, listed or not, at the version that is selected. Raises QueryFailed:
    `not_found` with similar names, or with the versions there are; `invalid` for a text that is no
    reference; `conflict` for a version that is not what was signed."""
    viewer = Viewer(query.scope, query.principal)
    return (await resolution.resolve(viewer, query.reference)).record
