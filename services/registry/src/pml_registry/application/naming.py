"""Names of capabilities: reserved before their programs run, given once these have succeeded."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from pml_common.bus.errors import QueryFailed
from pml_common.contracts import ids
from pml_common.contracts.base import Message
from pml_common.contracts.dns import RecordChange
from pml_common.contracts.registry import CapabilityChanged
from pml_common.contracts.scope import Scope
from pml_registry.application.described import found_by
from pml_registry.domain.reservations import (
    LAPSES_AFTER,
    Purpose,
    Refusal,
    Reservation,
    Reserve,
    Use,
    Wish,
    description_of,
)
from pml_registry.ports import BehaviourTexts, NameStore, VersionRefused, WorkflowOutcomes
from pml_registry.ports.vectors import Embedder

log = logging.getLogger(__name__)

_MOST_AT_ONCE = 100

_CHANGES: Mapping[Purpose, RecordChange] = {
    "create": "named",
    "alias": "aliased",
    "version": "versioned",
}


@dataclass(frozen=True)
class Naming:
    """Reserves, gives and releases names."""

    names: NameStore
    embedder: Embedder
    outcomes: WorkflowOutcomes
    publish: Callable[[Message], Awaitable[object]]
    now: Callable[[], datetime]

    async def reserve(self, scope: Scope, wish: Wish) -> Use | Reserve | Refusal:
        """Decide on a wish, after a look at a lapsed reservation that is in its way. Raises
        StorageUnavailable, and QueryFailed where the gateway does not tell how that one's workflow
        stands."""
        held = await self.names.in_the_way(scope, str(wish.name))
        if held is not None and held.workflow_id != wish.workflow_id:
            await self._look_at(scope, held)
        return await self.names.reserve(scope, wish, self.now() + LAPSES_AFTER)

    async def settle(self, scope: Scope, workflow_id: UUID, *, succeeded: bool) -> str | None:
        """Give a workflow the name that is reserved for it, or release it; return the name that was
        given. A repetition changes nothing. Raises StorageUnavailable, BusUnavailable, and
        VersionRefused: then the name is released, too."""
        held = await self.names.reservation(scope, workflow_id)
        if held is None:
            return None
        if succeeded or held.is_settled:
            try:
                await self._give(scope, held)
            except VersionRefused:
                await self.names.release(scope, workflow_id)
                raise
        await self.names.release(scope, workflow_id)
        return held.name if succeeded or held.is_settled else None

    async def look_at_lapsed(self) -> None:
        """Settle, release or keep the reservations that have lapsed, by how their workflows stand:
        a gateway may have died before it told. Raises StorageUnavailable and BusUnavailable."""
        for scope, held in await self.names.lapsed(self.now(), _MOST_AT_ONCE):
            try:
                await self._look_at(scope, held)
            except QueryFailed as error:
                log.warning("%s: the name %s stays reserved: %s", scope, held.name, error)

    async def _look_at(self, scope: Scope, held: Reservation) -> None:
        if held.is_settled:
            await self.settle(scope, held.workflow_id, succeeded=True)
            return
        if self.now() < held.lapses_at:
            return
        outcome = await self.outcomes.outcome_of(scope, held.workflow_id)
        if outcome.state == "under_way":
            await self.names.renew(scope, held.workflow_id, self.now() + LAPSES_AFTER)
        else:
            succeeded = outcome.state == "succeeded"
            try:
                await self.settle(scope, held.workflow_id, succeeded=succeeded)
            except VersionRefused as error:
                log.error("%s: %s is not given: %s", scope, held.name, error)

    async def _described(
        self, scope: Scope, held: Reservation, texts: BehaviourTexts
    ) -> BehaviourTexts:
        """Return the texts with the description of the version that gets the name."""
        latest = ""
        if held.purpose == "version" and held.record_id is not None:
            latest = await self.names.latest_description(scope, held.record_id)
        return replace(texts, description=description_of(held, texts.description, latest))

    async def _give(self, scope: Scope, held: Reservation) -> None:
        """Give the name, then say so. The reservation stays until that is said: where this process
        dies between, the name is given already, and said by whoever looks at it next."""
        if not held.is_settled:
            texts = await self.names.texts(scope, held.behaviour)
            name = texts.name if held.purpose == "alias" else held.name
            texts = await self._described(scope, held, texts)
            described = await found_by(name, texts, self.embedder)
            await self.names.settle(scope, held.workflow_id, described)
        named = CapabilityChanged(
            scope=scope,
            event_id=ids.effect_id(held.workflow_id, "capability-named"),
            capability_id=held.behaviour,
            name=held.name,
            change=_CHANGES[held.purpose],
            principal=held.principal,
        )
        await self.publish(named)
