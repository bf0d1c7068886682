"""Handles `save-capability`."""

from dataclasses import dataclass
from uuid import UUID

from pml_analysis.variants import NotLiftable
from pml_common.bus.errors import QueryFailed
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.capability import CapabilityRecord
from pml_common.contracts.curation import SaveCapability, SavedCapability
from pml_common.contracts.display_names import BadName, parse_display_name
from pml_common.contracts.references import Tag, parse_selector
from pml_registry.application.curation import Curator, reservation_id
from pml_registry.application.resolution import Resolution
from pml_registry.domain.reservations import Refusal, Reserve, Use, Wish
from pml_registry.domain.visibility import Viewer
from pml_registry.entrypoints.bus.on_execution_analyzed import on_execution_analyzed
from pml_registry.entrypoints.bus.on_lift_capability import own_record, viewer_of
from pml_registry.ports import CodeHashing
from pml_registry.ports.vectors import Embedder


@dataclass(frozen=True)
class Saving:
    """The parts that the handler works with."""

    curator: Curator
    resolution: Resolution
    embedder: Embedder
    hashing: CodeHashing


async def on_save_capability(query: SaveCapability, saving: Saving) -> SavedCapability:
    """Give a name to a program that has succeeded, or to what is lifted from it. Raises
    QueryFailed: `not_found`; `conflict` where another has the name, or the program has not
    succeeded; `invalid` where it is no name, or the analysis is not of the lifted program."""
    record = await _source(query, saving)
    behaviour, parameters = record.capability_id, tuple[str, ...]()
    if query.lifted is not None:
        parameters = await _store_lifted(viewer_of(query), query.lifted, record, saving)
        behaviour = query.lifted.capability.capability_id
    wish = _wish(query, behaviour, record.description)
    naming = saving.curator.naming
    decided = await naming.reserve(query.scope, wish)
    if isinstance(decided, Refusal):
        raise QueryFailed("conflict", decided.why)
    if isinstance(decided, Reserve):
        await naming.settle(query.scope, wish.workflow_id, succeeded=True)
    if query.lifted is not None:
        await saving.curator.store.hand_over(query.scope, record.capability_id, behaviour)
    return _saved(wish, decided).model_copy(update={"parameters": parameters})


async def _source(query: SaveCapability, saving: Saving) -> CapabilityRecord:
    """Return the capability whose program gets the name: one that has succeeded."""
    viewer = viewer_of(query)
    if query.workflow_id is not None:
        ran = await _program_of(query, query.workflow_id, saving)
        return await own_record(viewer, str(ran), saving.resolution)
    record = await own_record(viewer, query.reference or "", saving.resolution)
    if not record.usage.success_count:
        raise QueryFailed("conflict", f"no run of {record.name} has succeeded: run it first")
    return record


async def _program_of(query: SaveCapability, workflow_id: UUID, saving: Saving) -> UUID:
    outcome = await saving.curator.naming.outcomes.outcome_of(query.scope, workflow_id)
    if outcome.state == "unknown":
        raise QueryFailed("not_found", f"no workflow {workflow_id} in {query.scope}")
    if outcome.state != "succeeded" or outcome.capability_id is None:
        state = outcome.state if outcome.state != "succeeded" else "a dry run"
        raise QueryFailed("conflict", f"workflow {workflow_id} is {state}: only success is saved")
    return outcome.capability_id


async def _store_lifted(
    viewer: Viewer, analysis: ExecutionAnalyzed, record: CapabilityRecord, saving: Saving
) -> tuple[str, ...]:
    """Store the behaviour of a lifted program, if its analysis is of what the variants make; return
    its new parameters."""
    try:
        merge = await saving.curator.lift(viewer, record.capability_id)
    except NotLiftable as reason:
        raise QueryFailed("conflict", f"{record.name} cannot be lifted: {reason}") from reason
    lifted = await saving.hashing.hash_of(merge.lifted.code)
    is_its_own = analysis.scope == record.scope and not analysis.dry_run
    if not is_its_own or analysis.capability.code_hash != lifted:
        raise QueryFailed(
            "invalid",
            f"the analysis is not of the program lifted from {record.name} now: lift it again",
        )
    handled = await on_execution_analyzed(
        (analysis,), saving.resolution.capabilities, saving.embedder, saving.hashing
    )
    for error in handled.failed.values():
        raise QueryFailed("invalid", str(error)) from error
    for facts in handled.facts.values():
        for fact in facts:
            await saving.curator.naming.publish(fact)
    return tuple(merge.lifted.parameters)


def _wish(query: SaveCapability, behaviour: UUID, description: str) -> Wish:
    """Build the wish for a name; the version is for what the capability was that succeeded."""
    try:
        name = parse_display_name(query.name)
    except BadName as error:
        raise QueryFailed("invalid", str(error)) from error
    tag = None if query.version_tag is None else parse_selector(query.version_tag)
    return Wish(
        name=name,
        behaviour=behaviour,
        workflow_id=reservation_id(query.scope, behaviour, query.name),
        principal=query.principal,
        is_admin=query.is_admin,
        update=query.update,
        tag=tag if isinstance(tag, Tag) else None,
        change_summary=query.change_summary,
        intent=description,
    )


def _saved(wish: Wish, decided: Use | Reserve) -> SavedCapability:
    record = decided.record
    if isinstance(decided, Use):
        return SavedCapability(
            name=str(wish.name),
            purpose="use",
            capability_id=wish.behaviour,
            version=decided.version,
        )
    number = len(record.behaviours) if record else 0
    return SavedCapability(
        name=str(wish.name),
        purpose=decided.purpose,
        capability_id=wish.behaviour,
        version=number if decided.purpose == "alias" else number + 1,
    )
