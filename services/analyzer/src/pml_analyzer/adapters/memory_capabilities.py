"""Capabilities without a registry, for tests."""

from collections.abc import Mapping, Sequence

from pml_analyzer.ports import CapabilitiesUnavailable
from pml_common.contracts.registry import Reference
from pml_common.contracts.scope import Scope


class MemoryCapabilities:
    """See Capabilities. `known` is what the registry knows, by `str(scope)`; None: it is silent."""

    def __init__(self, known: dict[str, Sequence[Reference]] | None = None) -> None:
        self.known: dict[str, Sequence[Reference]] | None = known or {}
        self._copies: dict[tuple[Scope, str], Reference] = {}

    async def describe(self, scope: Scope, references: Sequence[str]) -> Mapping[str, Reference]:
        """See Capabilities."""
        return {reference: self._described(scope, reference) for reference in references}

    def _described(self, scope: Scope, reference: str) -> Reference:
        copy = self._copies.get((scope, reference))
        if copy is not None:
            return copy
        if self.known is None:
            raise CapabilitiesUnavailable(f"the registry does not answer for {scope}")
        for one in self.known.get(str(scope), ()):
            if one.reference == reference:
                if one.capability is not None:
                    self._copies[scope, reference] = one
                return one
        return Reference(reference=reference)

    def drop(self, scope: Scope) -> None:
        """See Capabilities."""
        self._copies = {key: one for key, one in self._copies.items() if key[0] != scope}
