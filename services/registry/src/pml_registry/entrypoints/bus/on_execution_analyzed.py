"""Handles `execution-analyzed`."""

from collections.abc import Sequence
from uuid import UUID

from pml_common.bus.errors import Rejected
from pml_common.bus.port import Handled
from pml_common.contracts import catalog, ids
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.base import Message
from pml_common.contracts.registry import CapabilityChanged
from pml_registry.application.described import embed_or_later
from pml_registry.domain.admission import Admission, admit, candidate_names
from pml_registry.domain.listing import ScopedCapability, StoredCapability
from pml_registry.ports import CapabilityStore, CodeHashing, VersionRefused
from pml_registry.ports.vectors import Embedder

_CONSUMER = catalog.REGISTRY_ON_EXECUTION_ANALYZED.durable


async def on_execution_analyzed(
    analyses: Sequence[ExecutionAnalyzed],
    capabilities: CapabilityStore,
    embedder: Embedder,
    hashing: CodeHashing,
) -> Handled:
    """Create or complete capabilities, new ones unlisted; a redelivery publishes the same messages.
    A dry run creates none: nothing of it is learned. Code that does not match its hash fails as
    Rejected.

    Most runs are repeated and need one read for the batch; a new or incomplete capability gets a
    transaction of its own, since it is embedded and named in it."""
    pending, failed = await _admissible(analyses, hashing)
    facts: dict[UUID, Sequence[Message]] = {}
    while pending:
        admitted: set[ScopedCapability] = set()
        again: list[ExecutionAnalyzed] = []
        looked_up = await capabilities.look_up(pending, _CONSUMER)
        for analysis, found in zip(pending, looked_up, strict=True):
            capability = (analysis.scope, analysis.capability.capability_id)
            if found.replayed is not None:
                facts[analysis.event_id] = found.replayed
            elif capability in admitted:
                again.append(analysis)
            elif found.capability is None or not _complete(analysis, found.capability):
                try:
                    facts[analysis.event_id] = await _admit(
                        analysis, found.capability, capabilities, embedder, hashing
                    )
                except VersionRefused as error:
                    failed[analysis.event_id] = Rejected(str(error))
                else:
                    admitted.add(capability)
        pending = again
    return Handled(facts, failed)


async def _admissible(
    analyses: Sequence[ExecutionAnalyzed], hashing: CodeHashing
) -> tuple[Sequence[ExecutionAnalyzed], dict[UUID, Rejected]]:
    """Return the analyses of real runs whose code matches its hash, and the errors of others."""
    admissible: list[ExecutionAnalyzed] = []
    failed: dict[UUID, Rejected] = {}
    for analysis in analyses:
        if analysis.dry_run:
            continue
        try:
            await _verify_hash(analysis, hashing)
        except Rejected as error:
            failed[analysis.event_id] = error
        else:
            admissible.append(analysis)
    return admissible, failed


async def _admit(
    analysis: ExecutionAnalyzed,
    seen: StoredCapability | None,
    capabilities: CapabilityStore,
    embedder: Embedder,
    hashing: CodeHashing,
) -> Sequence[Message]:
    """Create a capability, or complete it. Its text is embedded before names are locked, as it will
    be if nothing has changed since it was `seen`: others wait for the lock."""
    shape = await hashing.shape_of(analysis.code) if seen is None else None
    likely = admit(analysis, seen, ()).document
    embedded = await embed_or_later(embedder, [likely])
    async with capabilities.once(analysis.scope, analysis.event_id, _CONSUMER) as transaction:
        if transaction.replayed is not None:
            return transaction.replayed
        existing = await transaction.capability(analysis.scope, analysis.capability.capability_id)
        names = candidate_names(analysis, existing)
        taken = await transaction.taken(analysis.scope, names) if names else ()
        admission = admit(analysis, existing, taken)
        if admission.altered:
            if admission.document != likely:
                embedded = await embed_or_later(embedder, [admission.document])
            await transaction.admit(analysis, admission, embedded, shape)
        return transaction.conclude(_messages(analysis, admission))


async def _verify_hash(analysis: ExecutionAnalyzed, hashing: CodeHashing) -> None:
    """Verify the hash that identifies the capability: a false one would replace another's code.
    Raises Rejected."""
    if "\x00" in analysis.code:
        raise Rejected("the code contains a NUL character, which cannot be stored")
    claimed = analysis.capability
    found = await hashing.hash_of(analysis.code)
    if found != claimed.code_hash:
        raise Rejected(f"the code's hash is {found}, not {claimed.code_hash}")
    if claimed.capability_id != ids.capability_id(analysis.scope, claimed.code_hash):
        raise Rejected(f"{claimed.capability_id} is not the id of {claimed.code_hash}")


def _complete(analysis: ExecutionAnalyzed, existing: StoredCapability) -> bool:
    """Whether the analysis adds nothing to an existing capability: most runs are repeated, and need
    no transaction."""
    return not admit(analysis, existing, ()).altered


def _messages(analysis: ExecutionAnalyzed, admission: Admission) -> Sequence[CapabilityChanged]:
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
