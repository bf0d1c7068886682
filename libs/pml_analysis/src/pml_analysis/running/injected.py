"""Nested capabilities as they run."""

from collections.abc import Iterable

from pml_analysis.decision.capabilities import Reached
from pml_common.contracts.capability import InjectedCapability, NestedCapability
from pml_common.contracts.parameters import needed_of


def injected(
    nested: Iterable[NestedCapability], reached: Iterable[Reached]
) -> tuple[InjectedCapability, ...]:
    """Return each of `nested`, all of them among `reached`, with its program as it runs."""
    found = {one.capability.id: one.capability for one in reached}
    return tuple(
        InjectedCapability(
            capability_id=one.capability_id,
            name=one.name,
            code_hash=one.code_hash,
            called_as=one.called_as,
            instrumented=found[one.capability_id].runs.text,
            insertions=found[one.capability_id].runs.insertions,
            certain=needed_of(found[one.capability_id].about.parameters_schema),
        )
        for one in nested
    )
