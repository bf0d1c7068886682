"""Ports of curation."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from pml_common.contracts.scope import Scope
from pml_registry.domain.curation import Suggestion, Unnamed
from pml_registry.domain.visibility import Viewer
from pml_registry.ports import CodeShape


@dataclass(frozen=True)
class Variant:
    """A behaviour of a shape that others have, too."""

    capability_id: UUID
    code: str


class CurationStore(Protocol):
    """Capabilities without a name, the names suggested for them, and the shapes of programs."""

    async def unnamed(self, viewer: Viewer, *, least_usage: int, limit: int) -> Sequence[Unnamed]:
        """Return the listed capabilities of the viewer's scope that it sees and that have no given
        name, the most used first."""
        ...

    async def count_unnamed(self, scope: Scope) -> int:
        """Return the number of listed capabilities that have no given name."""
        ...

    async def taken(self, scope: Scope, names: Collection[str]) -> Collection[str]:
        """Return those of the callable names that a present, former or reserved name has."""
        ...

    async def suggested(
        self, scope: Scope, capabilities: Sequence[UUID]
    ) -> Mapping[UUID, Suggestion]:
        """Return the stored suggestions."""
        ...

    async def keep(self, scope: Scope, suggestions: Sequence[Suggestion]) -> None:
        """Store suggestions in place of earlier ones."""
        ...

    async def claim_uncurated(
        self, least: int, limit: int, now: datetime, until: datetime
    ) -> Sequence[Scope]:
        """Claim until then the scopes where at least so many capabilities have neither a name nor a
        suggestion, without those that are claimed now."""
        ...

    async def release(self, scope: Scope) -> None:
        """End the claim of a scope."""
        ...

    async def variant_groups(
        self, viewer: Viewer, *, shapes: int, variants: int
    ) -> Sequence[Sequence[Variant]]:
        """Return behaviours that the viewer sees, have succeeded, and differ by literals alone, by
        shape: the offered one first, the most used shape first."""
        ...

    async def variants_of(
        self, viewer: Viewer, capability_id: UUID, limit: int
    ) -> Sequence[Variant]:
        """Return a behaviour, and those that differ from it by literals alone, have succeeded and
        are seen."""
        ...

    async def hand_over(self, scope: Scope, capability_id: UUID, lifted: UUID) -> None:
        """Offer the lifted behaviour in place of the unnamed ones of this one's shape."""
        ...

    async def unread(self, limit: int) -> Sequence[tuple[Scope, Variant]]:
        """Return behaviours whose shape is not known yet."""
        ...

    async def set_shape(self, scope: Scope, capability_id: UUID, shape: CodeShape) -> None:
        """Store the shape of a behaviour that has none."""
        ...


class NameModel(Protocol):
    """A language model that proposes names."""

    async def propose(self, capabilities: Sequence[Unnamed]) -> Mapping[UUID, str]:
        """Return names, which may be invalid, for some or all. Empty where the model does not
        answer in time, or not as asked."""
        ...
