"""Nested capabilities as they run."""

from collections.abc import Iterable

from pml_analysis.decision.capabilities import Reached
from pml_common.contracts.capability import InjectedCapability, NestedCapability


def injected(
    nested: Iterable[NestedCapability], reached: Iterable[Reached]
) -> tuple[InjectedCapability, ...]:
    """Return each of `nested`, all of them among `reached`, with its program as it runs."""
    programs = {one.capability.id: one.capability.runs for one in reached}
    return tuple(
        InjectedCapability(
            capability_id=one.capability_id,
            name=one.name,
            code_hash=one.code_hash,
            called_as=one.called_as,
            instrumented=programs[one.capability_id].text,
            insertions=programs[one.capability_id].insertions,
        )
        for one in nested
    )
