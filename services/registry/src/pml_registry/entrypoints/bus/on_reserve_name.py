"""Handles `reserve-name`."""

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.display_names import BadName, parse_display_name
from pml_common.contracts.references import Tag, parse_selector
from pml_common.contracts.registry import ReservedName, ReserveName
from pml_registry.application.naming import Naming
from pml_registry.domain.reservations import Refusal, Use, Wish
from pml_registry.entrypoints.bus.on_execution_analyzed import on_execution_analyzed
from pml_registry.ports import CapabilityStore, CodeHashing
from pml_registry.ports.vectors import Embedder


async def on_reserve_name(
    query: ReserveName,
    naming: Naming,
    capabilities: CapabilityStore,
    embedder: Embedder,
    hashing: CodeHashing,
) -> ReservedName:
    """Store the program's behaviour, if it is new, and reserve its name. Raises QueryFailed:
    `conflict` where another has the name, and `invalid` where it is no name or the code is not
    what its hash says."""
    wish = _wish(query)
    handled = await on_execution_analyzed((query.analysis,), capabilities, embedder, hashing)
    for error in handled.failed.values():
        raise QueryFailed("invalid", str(error)) from error
    for facts in handled.facts.values():
        for fact in facts:
            await naming.publish(fact)
    decided = await naming.reserve(query.scope, wish)
    if isinstance(decided, Refusal):
        raise QueryFailed("conflict", decided.why)
    if isinstance(decided, Use):
        record = decided.record
        return ReservedName(
            name=record.name, purpose="use", record_id=record.record_id, version=decided.version
        )
    record = decided.record
    version = len(record.behaviours) if record else 0
    return ReservedName(
        name=str(wish.name),
        purpose=decided.purpose,
        record_id=record.record_id if record else None,
        version=version if decided.purpose == "alias" else version + 1,
    )


def _wish(query: ReserveName) -> Wish:
    try:
        name = parse_display_name(query.name)
    except BadName as error:
        raise QueryFailed("invalid", str(error)) from error
    tag = None if query.version_tag is None else parse_selector(query.version_tag)
    return Wish(
        name=name,
        behaviour=query.analysis.capability.capability_id,
        workflow_id=query.workflow_id,
        principal=query.analysis.principal,
        update=query.update,
        tag=tag if isinstance(tag, Tag) else None,
        change_summary=query.change_summary,
        intent=query.analysis.intent or "",
    )
