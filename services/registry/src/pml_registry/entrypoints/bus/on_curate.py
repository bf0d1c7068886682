"""Handles `curate`."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.curation import (
    Curate,
    Curation,
    GivenName,
    MergeSuggestion,
    NameSuggestion,
    RefusedName,
)
from pml_registry.application.curation import Curator, Merge, NotGiven
from pml_registry.application.resolution import Resolution
from pml_registry.domain.curation import Suggestion, Unnamed
from pml_registry.domain.visibility import Viewer
from pml_registry.entrypoints.bus.on_lift_capability import own_record, viewer_of

_Outcome = tuple[Sequence[GivenName], Sequence[RefusedName]]


async def on_curate(query: Curate, curator: Curator, resolution: Resolution) -> Curation:
    """Suggest names, give those suggested with enough confidence, or give those chosen. A name that
    another has, or that is reserved, is never given."""
    given: Sequence[GivenName] = ()
    refused: Sequence[RefusedName] = ()
    suggested: Sequence[tuple[Unnamed, Suggestion]] = ()
    if query.mode == "apply":
        given, refused = await _apply(query, curator, resolution)
    else:
        suggested = await _suggested(query, curator)
    if query.mode == "auto":
        given, refused = await _give_sure(query, curator, suggested)
        names = {each.capability_id for each in given}
        suggested = [pair for pair in suggested if pair[0].capability_id not in names]
    merges = await curator.merges(viewer_of(query)) if query.mode == "suggest" else ()
    return Curation(
        suggestions=tuple(_suggestion(*pair) for pair in suggested),
        merges=tuple([await _merge(viewer_of(query), merge, resolution) for merge in merges]),
        given=tuple(given),
        refused=tuple(refused),
        unnamed=await curator.store.count_unnamed(query.scope),
    )


async def _suggested(query: Curate, curator: Curator) -> Sequence[tuple[Unnamed, Suggestion]]:
    found = await curator.store.unnamed(
        viewer_of(query), least_usage=query.min_usage, limit=query.limit
    )
    return [
        (unnamed, suggestion)
        for unnamed, suggestion in await curator.suggest(query.scope, found)
        if query.namespace is None or suggestion.name.startswith(f"{query.namespace}:")
    ]


async def _give_sure(
    query: Curate, curator: Curator, suggested: Iterable[tuple[Unnamed, Suggestion]]
) -> _Outcome:
    given: list[GivenName] = []
    refused: list[RefusedName] = []
    for unnamed, suggestion in suggested:
        if suggestion.confidence < query.min_confidence:
            continue
        id_, name = unnamed.capability_id, suggestion.name
        try:
            await curator.give(query.scope, id_, unnamed.owner, name)
        except NotGiven as reason:
            refused.append(RefusedName(capability_id=id_, name=name, why=str(reason)))
        else:
            given.append(GivenName(capability_id=id_, name=name))
    return given, refused


async def _apply(query: Curate, curator: Curator, resolution: Resolution) -> _Outcome:
    """Give the chosen names, in order; a repetition finds them given."""
    given: list[GivenName] = []
    refused: list[RefusedName] = []
    for choice in query.names:
        id_, name = choice.capability_id, choice.name
        try:
            await _apply_one(viewer_of(query), id_, name, curator, resolution)
        except NotGiven as reason:
            refused.append(RefusedName(capability_id=id_, name=name, why=str(reason)))
        else:
            given.append(GivenName(capability_id=id_, name=name))
    return given, refused


async def _apply_one(
    viewer: Viewer, capability_id: UUID, name: str, curator: Curator, resolution: Resolution
) -> None:
    try:
        record = await own_record(viewer, str(capability_id), resolution)
    except QueryFailed as failure:
        raise NotGiven(failure.message) from failure
    if name in (record.name, *record.aliases):
        return
    if record.named:
        raise NotGiven(f"it is {record.name} already: rename it")
    if not record.usage.success_count:
        raise NotGiven("no run of it has succeeded")
    await curator.give(viewer.scope, record.capability_id, record.owner, name)


def _suggestion(unnamed: Unnamed, suggestion: Suggestion) -> NameSuggestion:
    return NameSuggestion(
        capability_id=unnamed.capability_id,
        provisional_name=unnamed.name,
        name=suggestion.name,
        confidence=suggestion.confidence,
        reasons=tuple(suggestion.reasons),
        source=suggestion.source,
    )


async def _merge(viewer: Viewer, merge: Merge, resolution: Resolution) -> MergeSuggestion:
    ids = tuple(variant.capability_id for variant in merge.variants)
    offered = await own_record(viewer, str(ids[0]), resolution)
    parameters = tuple(merge.lifted.parameters)
    what = " and ".join(parameters) if parameters else "nothing but their layout"
    return MergeSuggestion(
        capability_ids=ids,
        name=offered.name,
        code=merge.lifted.code,
        parameters=parameters,
        reasons=(f"{len(ids)} programs differ by {what} alone",),
    )
