"""Handles `resolve-capability`."""

import logging
from uuid import UUID

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.registry import ResolveCapability
from pml_registry.domain.names import parse_reference, similar_names
from pml_registry.ports import CapabilityStore

log = logging.getLogger(__name__)


async def on_resolve_capability(
    query: ResolveCapability, capabilities: CapabilityStore
) -> CapabilityRecord:
    """Return the capability, listed or not. Raises QueryFailed `not_found` with similar names."""
    reference = parse_reference(query.reference)
    record = await capabilities.resolve(query.scope, reference)
    if record is None:
        raise QueryFailed("not_found", await _not_found(query, reference, capabilities))
    if isinstance(reference, str) and reference != record.name:
        log.warning(
            "%s: %s was renamed to %s; use the new name", query.scope, reference, record.name
        )
    return record


async def _not_found(
    query: ResolveCapability, reference: UUID | str, capabilities: CapabilityStore
) -> str:
    reason = f"no capability {query.reference!r} in {query.scope}"
    if isinstance(reference, UUID):
        return reason
    near = similar_names(reference, await capabilities.names(query.scope))
    return f"{reason}; did you mean {' or '.join(near)}?" if near else reason
