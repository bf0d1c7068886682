"""Curation: names for capabilities that have none, and variants of one program."""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from pml_analysis.variants import LiftedVariants, NotLiftable, lift_variants
from pml_common.contracts import ids
from pml_common.contracts.callable_names import callable_name
from pml_common.contracts.display_names import BadName, parse_display_name
from pml_common.contracts.scope import Scope
from pml_registry.application.naming import Naming
from pml_registry.domain.curation import Suggestion, Unnamed, choose, drafts, with_proposals
from pml_registry.domain.reservations import Refusal, Reserve, Use, Wish
from pml_registry.domain.visibility import Viewer
from pml_registry.ports import CodeHashing, CodeShape
from pml_registry.ports.curation import CurationStore, NameModel, Variant

log = logging.getLogger(__name__)

MOST_VARIANTS = 20
"""Programs from which one is lifted, at most."""

_MOST_SHAPES = 20
_MOST_SCOPES = 10
_MOST_AT_ONCE = 100
_CLAIM = timedelta(minutes=5)


class NotGiven(Exception):
    """A capability does not get a name; says why."""


@dataclass(frozen=True)
class Merge:
    """Variants, the offered one first, and the program lifted from them."""

    variants: Sequence[Variant]
    lifted: LiftedVariants


@dataclass(frozen=True)
class Curator:
    """Suggests names and gives them. Without a model the names are by rules."""

    store: CurationStore
    naming: Naming
    hashing: CodeHashing
    model: NameModel | None
    now: Callable[[], datetime]

    async def suggest(
        self, scope: Scope, unnamed: Sequence[Unnamed]
    ) -> Sequence[tuple[Unnamed, Suggestion]]:
        """Suggest a free name for each. Names that were suggested before stay, unless somebody
        has taken one since. Raises StorageUnavailable."""
        stored = await self.store.suggested(scope, [each.capability_id for each in unnamed])
        names = [callable_name(each.name) for each in stored.values()]
        taken = await self.store.taken(scope, names)
        found = {id_: each for id_, each in stored.items() if callable_name(each.name) not in taken}
        missing = [each for each in unnamed if each.capability_id not in found]
        for suggestion in await self._draft(scope, missing, list(found.values())):
            found[suggestion.capability_id] = suggestion
        pairs = ((each, found.get(each.capability_id)) for each in unnamed)
        return [(each, suggestion) for each, suggestion in pairs if suggestion is not None]

    async def _draft(
        self, scope: Scope, unnamed: Sequence[Unnamed], others: Collection[Suggestion]
    ) -> Sequence[Suggestion]:
        if not unnamed:
            return ()
        drafted = drafts(unnamed)
        if self.model is not None:
            drafted = with_proposals(drafted, await self.model.propose(unnamed))
        names = {callable_name(name) for draft in drafted for name in draft.names}
        taken = {*await self.store.taken(scope, names)}
        suggestions = choose(drafted, taken | {callable_name(each.name) for each in others})
        await self.store.keep(scope, suggestions)
        return suggestions

    async def give(self, scope: Scope, capability_id: UUID, owner: str, name: str) -> None:
        """Give an unnamed capability a free name, on behalf of its owner; what has the name already
        stays so. Raises NotGiven, StorageUnavailable and BusUnavailable."""
        try:
            parsed = parse_display_name(name)
        except BadName as error:
            raise NotGiven(str(error)) from error
        wish = Wish(
            name=parsed,
            behaviour=capability_id,
            workflow_id=reservation_id(scope, capability_id, name),
            principal=owner,
        )
        decided = await self.naming.reserve(scope, wish)
        match decided:
            case Refusal(why):
                raise NotGiven(why)
            case Use():
                return
            case Reserve("create"):
                await self.naming.settle(scope, wish.workflow_id, succeeded=True)
            case Reserve():
                await self.naming.settle(scope, wish.workflow_id, succeeded=False)
                raise NotGiven("it was named meanwhile")

    async def merges(self, viewer: Viewer) -> Sequence[Merge]:
        """Return what could be one program. Raises StorageUnavailable."""
        groups = await self.store.variant_groups(
            viewer, shapes=_MOST_SHAPES, variants=MOST_VARIANTS
        )
        found: list[Merge] = []
        for variants in groups:
            try:
                found.append(Merge(variants, await _lifted(variants)))
            except NotLiftable as reason:
                log.info("%s: %s stays: %s", viewer.scope, variants[0].capability_id, reason)
        return found

    async def lift(self, viewer: Viewer, capability_id: UUID) -> Merge:
        """Make one program of a capability and its variants; by default it behaves as this one.
        Raises NotLiftable and StorageUnavailable."""
        variants = await self.store.variants_of(viewer, capability_id, MOST_VARIANTS)
        return Merge(variants, await _lifted(variants))

    async def look(self, least: int) -> None:
        """Suggest names where at least so many capabilities have none, and read shapes of programs
        from before these were stored. Bounded; another replica leaves alone what this one does."""
        for scope, variant in await self.store.unread(_MOST_AT_ONCE):
            await self._read(scope, variant)
        if not least:
            return
        now = self.now()
        scopes = await self.store.claim_uncurated(least, _MOST_SCOPES, now, now + _CLAIM)
        for scope in scopes:
            unnamed = await self.store.unnamed(Viewer(scope), least_usage=0, limit=_MOST_AT_ONCE)
            suggested = await self.suggest(scope, unnamed)
            await self.store.release(scope)
            log.info("%s: suggested %d names", scope, len(suggested))

    async def _read(self, scope: Scope, variant: Variant) -> None:
        """Store the shape of a program; one that does not parse has one of its own."""
        shape = await self.hashing.shape_of(variant.code)
        own = CodeShape(shape_hash=str(variant.capability_id), makes_calls=True)
        await self.store.set_shape(scope, variant.capability_id, shape or own)


def reservation_id(scope: Scope, capability_id: UUID, name: str) -> UUID:
    """Return the id under which a name is reserved for a capability that does not run for it; equal
    for repetitions."""
    return ids.scoped_id(scope, "curation", str(capability_id), name)


async def _lifted(variants: Sequence[Variant]) -> LiftedVariants:
    return await asyncio.to_thread(lift_variants, [variant.code for variant in variants])
