"""A program was understood: it is a capability, new or known."""

import logging
from collections.abc import Sequence

from pml_common.bus.errors import Rejected
from pml_common.contracts import catalog, ids
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.registry import CapabilityChanged
from pml_registry.domain.admission import Admission, admit, wanted_names
from pml_registry.ports import CapabilityStore, Embedder

log = logging.getLogger(__name__)

_CONSUMER = catalog.REGISTRY_ON_EXECUTION_ANALYZED.durable


async def on_execution_analyzed(
    analysis: ExecutionAnalyzed, capabilities: CapabilityStore, embedder: Embedder
) -> Sequence[Message]:
    """Create the capability, unlisted, or complete it; a redelivery states the same facts. A dry
    run makes none: nothing of it is learned."""
    if analysis.dry_run:
        return ()
    if "\x00" in analysis.code:
        raise Rejected("the code holds a NUL character, which cannot be stored")
    identity, scope = analysis.capability, analysis.scope
    async with capabilities.once(analysis.event_id, _CONSUMER) as handling:
        if handling.replayed is not None:
            return handling.replayed
        held = await handling.capability(scope, identity.capability_id)
        record = held.record if held else None
        names = wanted_names(analysis, record)
        taken = await handling.taken(scope, names) if names else ()
        admission = admit(analysis, record, taken)
        if admission.refused_name:
            log.warning(
                "%s: capability %s stays %s: it has a name already or somebody else holds %s",
                scope,
                identity.capability_id,
                admission.name,
                admission.refused_name,
            )
        if admission.altered:
            embedded = await embedder.embed([admission.document])
            await handling.admit(analysis, admission, embedded)
        return handling.conclude(_facts(analysis, admission))


def _facts(analysis: ExecutionAnalyzed, admission: Admission) -> Sequence[CapabilityChanged]:
    if admission.change is None:
        return ()
    return [
        CapabilityChanged(
            scope=analysis.scope,
            event_id=ids.effect_id(analysis.event_id, "capability-changed"),
            capability_id=analysis.capability.capability_id,
            name=admission.name,
            change=admission.change,
        )
    ]
