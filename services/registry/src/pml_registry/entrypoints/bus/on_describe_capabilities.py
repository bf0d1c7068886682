"""Which capabilities does a program name?"""

import logging

from pml_common.contracts.registry import (
    CapabilityDescriptions,
    DescribeCapabilities,
    Reference,
)
from pml_registry.domain.names import near_references
from pml_registry.ports import CapabilityStore

log = logging.getLogger(__name__)


async def on_describe_capabilities(
    query: DescribeCapabilities, capabilities: CapabilityStore
) -> CapabilityDescriptions:
    """Each reference with its capability, listed or not, or with names that are near."""
    references = list(dict.fromkeys(query.references))
    found = await capabilities.describe(query.scope, references)
    names = await capabilities.names(query.scope) if len(found) < len(references) else ()
    for reference, capability in found.items():
        if reference in capability.aliases:
            log.warning("%s: %s is now %s; use that name", query.scope, reference, capability.name)
    return CapabilityDescriptions(
        references=tuple(
            Reference(reference=reference, capability=found[reference])
            if reference in found
            else Reference(reference=reference, near=tuple(near_references(reference, names)))
            for reference in references
        )
    )
