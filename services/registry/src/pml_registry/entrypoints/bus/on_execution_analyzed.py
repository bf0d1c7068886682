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
from pml_registry.domain.listing import ScopedCapability
from pml_registry.ports import CapabilityStore, CodeHashing, VersionRefused
from pml_registry.ports.vectors import Embedder

_CONSUMER = catalog.REGISTRY_ON_EXECUTION_ANALYZED.durable


async def on_execution_analyzed(
    analyses: Sequence[ExecutionAnalyzed],
    capabilities: CapabilityStore,
    embedder: Embedder,
    hashing: CodeHashing,
) -> Handled:
    """Create capabilities that are new, unlisted and without a description; a redelivery publishes
    the same messages. A dry run creates none: nothing of it is learned. Code that does not match
    its hash fails as Rejected.

    Most runs are repeated and need one read for the batch; a new capability gets a transaction of
    its own, since it is embedded and named in it."""
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
            elif found.capability is None:
                try:
                    facts[analysis.event_id] = await _admit(
                        analysis, capabilities, embedder, hashing
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
    capabilities: CapabilityStore,
    embedder: Embedder,
    hashing: CodeHashing,
) -> Sequence[Message]:
    """Create a capability, unless there is one since it was looked up. Its text is embedded before
    names are locked, as it will be if its first name is free: others wait for the lock."""
    shape = await hashing.shape_of(analysis.code)
    likely = admit(analysis, ()).document
    embedded = await embed_or_later(embedder, [likely])
    async with capabilities.once(analysis.scope, analysis.event_id, _CONSUMER) as transaction:
        if transaction.replayed is not None:
            return transaction.replayed
        identity = analysis.capability.capability_id
        if await transaction.capability(analysis.scope, identity) is not None:
            return transaction.conclude(())
        taken = await transaction.taken(analysis.scope, candidate_names(analysis))
        admission = admit(analysis, taken)
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


def _messages(analysis: ExecutionAnalyzed, admission: Admission) -> Sequence[CapabilityChanged]:
    return [
        CapabilityChanged(
            scope=analysis.scope,
            event_id=ids.effect_id(analysis.event_id, "capability-changed"),
            capability_id=analysis.capability.capability_id,
            name=admission.name,
            change="created",
        )
    ]
