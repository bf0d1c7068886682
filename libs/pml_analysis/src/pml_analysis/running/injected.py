"""Nested capabilities as they run."""

from collections.abc import Collection, Iterable, Mapping

from pml_analysis.decision.capabilities import Reached
from pml_analysis.running.listed_names import with_lists
from pml_common.contracts.capability import InjectedCapability, NestedCapability
from pml_common.contracts.parameters import needed_of


def injected(
    nested: Iterable[NestedCapability],
    reached: Iterable[Reached],
    offered: Mapping[str, Collection[str]],
) -> tuple[InjectedCapability, ...]:
    """Return each of `nested`, all of them among `reached`, with its program as it runs; `offered`
    are the names of tools by server."""
    found = {one.capability.id: one.capability for one in reached}
    runs = {key: with_lists(one.runs, one.lists, offered) for key, one in found.items()}
    return tuple(
        InjectedCapability(
            capability_id=one.capability_id,
            name=one.name,
            code_hash=one.code_hash,
            called_as=one.called_as,
            instrumented=runs[one.capability_id].text,
            insertions=runs[one.capability_id].insertions,
            certain=needed_of(found[one.capability_id].about.parameters_schema),
        )
        for one in nested
    )
