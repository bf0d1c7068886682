"""Capabilities without a registry, for tests."""

from collections.abc import Mapping, Sequence

from typing_extensions import override

from pml_analyzer.ports import Capabilities, CapabilitiesUnavailable
from pml_common.contracts.registry import Reference
from pml_common.contracts.scope import Scope


class MemoryCapabilities(Capabilities):
    """Capabilities of an in-memory registry. `known` are its contents, by `str(scope)`; None: it
    does not answer."""

    def __init__(self, known: dict[str, Sequence[Reference]] | None = None) -> None:
        self.known: dict[str, Sequence[Reference]] | None = known or {}
        self._cache: dict[tuple[Scope, str], Reference] = {}

    @override
    async def describe(self, scope: Scope, references: Sequence[str]) -> Mapping[str, Reference]:
        return {reference: self._described(scope, reference) for reference in references}

    def _described(self, scope: Scope, reference: str) -> Reference:
        copy = self._cache.get((scope, reference))
        if copy is not None:
            return copy
        if self.known is None:
            raise CapabilitiesUnavailable(f"the registry does not answer for {scope}")
        for one in self.known.get(str(scope), ()):
            if one.reference == reference:
                if one.capability is not None:
                    self._cache[scope, reference] = one
                return one
        return Reference(reference=reference)

    @override
    def invalidate(self, scope: Scope) -> None:
        self._cache = {key: one for key, one in self._cache.items() if key[0] != scope}
