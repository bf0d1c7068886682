"""Evidence of scopes in memory, for rankings."""

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from pml_common.contracts.scope import Scope
from pml_registry.domain.evidence import Use, support
from pml_registry.domain.ranking import Target
from pml_registry.ports.evidence import EvidenceStore, IntentVector, Stand, StoredUse
from pml_registry.ports.vectors import Embedded

MOST_SCOPES: Final = 16
"""Scopes whose uses are kept in memory, those used last."""

LOOK_EVERY_S: Final = 1.0
"""Seconds for which a scope's state is taken for the present one."""

_MOST_STANDS: Final = 1_000

T = TypeVar("T")


@dataclass(frozen=True)
class Held:
    """The uses of a scope at some time, by their ids."""

    stand: Stand = field(default_factory=Stand)
    stored: Mapping[UUID, StoredUse] = field(default_factory=dict[UUID, StoredUse])

    @cached_property
    def uses(self) -> Sequence[Use]:
        """The uses alone."""
        return [each.use for each in self.stored.values()]

    def support(self, embedded: Embedded) -> Mapping[Target, float]:
        """The support of an intent, whose vector is the first one; uses embedded with another model
        do not count."""
        uses, vectors = self._of_model(embedded.model)
        if not uses:
            return {}
        asked = np.asarray(embedded.vectors[0], np.float32)
        # BLAS would wait for its threads, on a busy machine for longer than this takes.
        return support(np.einsum("ij,j->i", vectors, asked), uses)

    def vector_of(self, intent: str, model: str) -> IntentVector | None:
        """The vector of an intent that is held."""
        return self._vectors.get((intent, model))

    def plus(self, use: StoredUse) -> "Held":
        """Return the same with a use more, or with it in place of an earlier one."""
        return replace(self, stored={**self.stored, use.use_id: use})

    @cached_property
    def _vectors(self) -> Mapping[tuple[str, str], IntentVector]:
        return {(each.use.intent, each.model): each.vector for each in self.stored.values()}

    @cached_property
    def _matrices(self) -> dict[str, tuple[Sequence[Use], NDArray[np.float32]]]:
        return {}

    def _of_model(self, model: str) -> tuple[Sequence[Use], NDArray[np.float32]]:
        """The uses of a model, and their vectors as rows."""
        known = self._matrices.get(model)
        if known is None:
            found = [each for each in self.stored.values() if each.model == model]
            matrix = np.asarray([each.vector for each in found], np.float32)
            known = self._matrices[model] = [each.use for each in found], matrix
        return known


class Evidence:
    """Reads a scope's uses when a ranking needs them, and later those that are new."""

    def __init__(
        self,
        store: EvidenceStore,
        *,
        clock: Callable[[], float] = time.monotonic,
        look_every_s: float = LOOK_EVERY_S,
        most_scopes: int = MOST_SCOPES,
    ) -> None:
        self._store = store
        self._clock = clock
        self._look_every_s = look_every_s
        self._most_scopes = most_scopes
        self._looked: OrderedDict[Scope, tuple[float, Stand]] = OrderedDict()
        self._held: OrderedDict[Scope, Held] = OrderedDict()

    async def used(self, scope: Scope) -> Held | None:
        """Return the uses of a scope; None where rankings do not use them. Raises
        StorageUnavailable."""
        looked = self._looked.get(scope)
        if looked is None or self._clock() - looked[0] >= self._look_every_s:
            looked = await self._look(scope)
        stand = looked[1]
        return await self._read(scope, stand) if stand.standing.used else None

    async def held(self, scope: Scope) -> Held:
        """Return the present uses of a scope, whether rankings use them or not. Raises
        StorageUnavailable."""
        return await self._read(scope, (await self._look(scope))[1])

    async def _look(self, scope: Scope) -> tuple[float, Stand]:
        at = self._clock()
        looked = self._looked[scope] = at, await self._store.stand(scope)
        _bound(self._looked, scope, _MOST_STANDS)
        return looked

    async def _read(self, scope: Scope, stand: Stand) -> Held:
        known = self._held.get(scope, Held())
        if (known.stand.sequence, known.stand.reset) == (stand.sequence, stand.reset):
            return known
        is_added = known.stand.reset == stand.reset
        after = known.stand.sequence if is_added else 0
        new = {each.use_id: each for each in await self._store.uses(scope, after)}
        held = Held(stand, {**known.stored, **new} if is_added else new)
        self._held[scope] = held
        _bound(self._held, scope, self._most_scopes)
        return held


def _bound(kept: OrderedDict[Scope, T], scope: Scope, most: int) -> None:
    """Drop the scopes that were not used for longest."""
    kept.move_to_end(scope)
    while len(kept) > most:
        kept.popitem(last=False)
