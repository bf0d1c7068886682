"""Handles `describe-capabilities`."""

import logging
from collections.abc import Sequence

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.callable_names import callable_name
from pml_common.contracts.capability import CapabilityDescription
from pml_common.contracts.registry import (
    CapabilityDescriptions,
    DescribeCapabilities,
    Reference,
)
from pml_registry.application.resolution import Resolution
from pml_registry.domain.health import told_failing
from pml_registry.domain.names import similar_references
from pml_registry.domain.record_views import description_of
from pml_registry.domain.visibility import Viewer
from pml_registry.ports import Described

log = logging.getLogger(__name__)


async def on_describe_capabilities(
    query: DescribeCapabilities, resolution: Resolution
) -> CapabilityDescriptions:
    """Describe each referenced capability, listed or not; else suggest similar names. One that is
    not what was signed is told to be refused, without its code."""
    viewer, capabilities = Viewer(query.scope, query.principal), resolution.capabilities
    references = list(dict.fromkeys(query.references))
    described = await capabilities.describe(viewer, references)
    found = {reference: _described(reference, each) for reference, each in described.items()}
    for each in found.values():
        for notice in each.notices:
            log.warning("%s: %s", query.scope, notice)
    for reference in references:
        if reference not in found:
            answer = await _resolved(viewer, reference, resolution)
            found |= {reference: answer} if answer is not None else {}
    names = await capabilities.names(viewer) if len(found) < len(references) else ()
    return CapabilityDescriptions(
        references=tuple(found.get(each) or _unknown(each, names) for each in references)
    )


def _is_former(reference: str, about: CapabilityDescription) -> bool:
    """Whether a reference is a former name, or how a program calls one."""
    called = {callable_name(alias) for alias in about.aliases} - {callable_name(about.name)}
    return reference in called or reference in about.aliases


def _described(reference: str, found: Described) -> Reference:
    if found.refused is not None:
        return Reference(reference=reference, refused=found.refused)
    about = found.description
    former = f"{reference} was renamed to {about.name}; use the new name"
    notices = (former,) if _is_former(reference, about) else ()
    if found.health == "failing":
        subject = f"{about.name}: version {found.version.statement.number}"
        notices = (*notices, told_failing(subject, found.usage, found.last_good))
    return Reference(reference=reference, capability=about, notices=notices)


async def _resolved(viewer: Viewer, reference: str, resolution: Resolution) -> Reference | None:
    """Describe a version that is selected, or what another scope shares."""
    try:
        if reference.isidentifier():
            meant = await resolution.called(viewer, reference)
        else:
            meant = await resolution.resolve(viewer, reference)
        if meant is None:
            return None
        record = meant.record
        if meant.located.place != "project":
            behaviour = await resolution.adopt(viewer, meant)
            record = record.model_copy(update={"capability_id": behaviour})
    except QueryFailed as failure:
        # Near names are of no help with a version: the failure says which versions there are.
        is_refused = failure.code == "conflict" or "@" in reference
        return Reference(reference=reference, refused=failure.message) if is_refused else None
    return Reference(reference=reference, capability=description_of(record), notices=record.notices)


def _unknown(reference: str, names: Sequence[str]) -> Reference:
    return Reference(reference=reference, near=tuple(similar_references(reference, names)))
