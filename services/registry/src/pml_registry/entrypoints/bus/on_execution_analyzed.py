"""A program was understood: it is a capability, new or known."""

import logging
from collections.abc import Sequence

from pml_common.bus.errors import Rejected
from pml_common.contracts import catalog, ids
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.registry import CapabilityChanged
from pml_registry.domain.admission import Admission, admit, wanted_names
from pml_registry.domain.listing import StoredCapability
from pml_registry.ports import CapabilityStore, CodeHashing, Embedder

log = logging.getLogger(__name__)

_CONSUMER = catalog.REGISTRY_ON_EXECUTION_ANALYZED.durable


async def on_execution_analyzed(
    analysis: ExecutionAnalyzed,
    capabilities: CapabilityStore,
    embedder: Embedder,
    hashing: CodeHashing,
) -> Sequence[Message]:
    """Create the capability, unlisted, or complete it; a redelivery states the same facts. A dry
    run makes none: nothing of it is learned. Raises Rejected for code that is not what its hash
    says."""
    if analysis.dry_run:
        return ()
    if "\x00" in analysis.code:
        raise Rejected("the code holds a NUL character, which cannot be stored")
    await _require_own_hash(analysis, hashing)
    identity, scope = analysis.capability, analysis.scope
    seen = await capabilities.seen(analysis.event_id, _CONSUMER, scope, identity.capability_id)
    if seen.replayed is not None:
        return seen.replayed
    if seen.held is not None and _complete(analysis, seen.held):
        return ()
    async with capabilities.once(analysis.event_id, _CONSUMER) as handling:
        if handling.replayed is not None:
            return handling.replayed
        held = await handling.capability(scope, identity.capability_id)
        names = wanted_names(analysis, held)
        taken = await handling.taken(scope, names) if names else ()
        admission = admit(analysis, held, taken)
        _tell_refused(analysis, admission)
        if admission.altered:
            embedded = await embedder.embed([admission.document])
            await handling.admit(analysis, admission, embedded)
        return handling.conclude(_facts(analysis, admission))


async def _require_own_hash(analysis: ExecutionAnalyzed, hashing: CodeHashing) -> None:
    """A capability is found by its hash: under another's, code would run in that one's place."""
    told = analysis.capability
    found = await hashing.hash_of(analysis.code)
    if found != told.code_hash:
        raise Rejected(f"the code's hash is {found}, not {told.code_hash}")
    if told.capability_id != ids.capability_id(analysis.scope, told.code_hash):
        raise Rejected(f"{told.capability_id} is not the id of {told.code_hash}")


def _complete(analysis: ExecutionAnalyzed, held: StoredCapability) -> bool:
    """Whether a known capability lacks nothing that the analysis could give: most runs are of
    one that ran before, and need no transaction to change nothing."""
    if wanted_names(analysis, held):
        return False
    admission = admit(analysis, held, ())
    if admission.altered:
        return False
    _tell_refused(analysis, admission)
    return True


def _tell_refused(analysis: ExecutionAnalyzed, admission: Admission) -> None:
    if admission.refused_name:
        log.warning(
            "%s: capability %s stays %s: it has a name already or somebody else holds %s",
            analysis.scope,
            analysis.capability.capability_id,
            admission.name,
            admission.refused_name,
        )


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
