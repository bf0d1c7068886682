"""Handles `describe-capabilities`."""

import logging

from pml_common.contracts.registry import (
    CapabilityDescriptions,
    DescribeCapabilities,
    Reference,
)
from pml_registry.domain.names import similar_references
from pml_registry.ports import CapabilityStore

log = logging.getLogger(__name__)


async def on_describe_capabilities(
    query: DescribeCapabilities, capabilities: CapabilityStore
) -> CapabilityDescriptions:
    """Describe each referenced capability, listed or not; else suggest similar names."""
    references = list(dict.fromkeys(query.references))
    found = await capabilities.describe(query.scope, references)
    names = await capabilities.names(query.scope) if len(found) < len(references) else ()
    for reference, capability in found.items():
        if reference in capability.aliases:
            log.warning(
                "%s: %s was renamed to %s; use the new name",
                query.scope,
                reference,
                capability.name,
            )
    return CapabilityDescriptions(
        references=tuple(
            Reference(reference=reference, capability=found[reference])
            if reference in found
            else Reference(reference=reference, near=tuple(similar_references(reference, names)))
            for reference in references
        )
    )
