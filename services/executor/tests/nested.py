"""Capabilities for programs to call, by the names that the analysis found for them."""

from uuid import UUID, uuid5

from pml_common.contracts.callable_names import callable_name
from pml_common.contracts.capability import InjectedCapability
from services.executor.tests.marked import instrumented

_NAMES = UUID("4bb1a6cb-7d9c-5d70-8f8f-5a1f0f4b7b52")


def capability(name: str, code: str, *called_as: str) -> InjectedCapability:
    """A capability, its «insertions» marked or not."""
    text, insertions = instrumented(code)
    return InjectedCapability(
        capability_id=uuid5(_NAMES, name),
        name=name,
        code_hash=uuid5(_NAMES, code).hex,
        called_as=called_as or (callable_name(name),),
        instrumented=text,
        insertions=insertions,
    )
