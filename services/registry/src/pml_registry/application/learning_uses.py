"""Learning from use: each new use is ranked with and without the uses before it, then stored."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from pml_common.contracts import ids
from pml_common.contracts.registry import Discover
from pml_common.contracts.scope import Scope
from pml_common.contracts.uses import ObservedUse, UsesObserved
from pml_registry.application.evidence import Evidence, Held
from pml_registry.application.searching import Search
from pml_registry.domain.evidence import Use, kept
from pml_registry.domain.intents import parts_of
from pml_registry.domain.ranking import NO_EVIDENCE, Target
from pml_registry.domain.trials import PLACES, Trial, judged, quality, to_measure
from pml_registry.ports import CandidateStore
from pml_registry.ports.evidence import EvidenceStore, NewUse, StoredUse
from pml_registry.ports.vectors import Embedded, Embedder, VectorSearch

MOST_NEW: Final = 50
"""Uses of one message that are kept."""

MOST_MEASURED: Final = 25
"""Uses of one message that are ranked: each costs two discoveries."""

_HOUR_MS = 3_600_000
_REEMBEDDED = 64
"""Intents that are embedded at once for a new model."""


@dataclass(frozen=True)
class UseLearning:
    """Stores uses and judges the evidence that they are."""

    store: EvidenceStore
    evidence: Evidence
    embedder: Embedder
    index: VectorSearch
    candidates: CandidateStore

    async def learn(self, observed: UsesObserved) -> None:
        """Store what a message shows, once under redelivery. Raises EmbedderUnavailable and
        StorageUnavailable."""
        held = await self.evidence.held(observed.scope)
        found = [_use(observed.scope, each) for each in observed.uses]
        places = kept(found, held.uses, MOST_NEW)
        measured = {places[at] for at in self._measured([found[at] for at in places], held)}
        new: list[NewUse] = []
        for place in places:
            seen, use = observed.uses[place], found[place]
            stored = await self._embedded(observed.scope, use, held)
            trial = (
                await self._trial(observed.scope, seen, use, held) if place in measured else None
            )
            use = replace(use, measured=trial is not None)
            held = held.plus(replace(stored, use=use))
            new.append(
                NewUse(stored.use_id, seen.workflow_id, use, stored.model, stored.vector, trial)
            )
        await self.store.learn(observed.scope, observed.event_id, new, judged)

    def _measured(self, new: Sequence[Use], held: Held) -> Sequence[int]:
        return to_measure(new, held.uses, MOST_MEASURED)

    async def _embedded(self, scope: Scope, use: Use, held: Held) -> StoredUse:
        """Embed the intent, unless it is held."""
        model = await self.embedder.model()
        vector = held.vector_of(use.intent, model)
        if vector is None:
            embedded = await self.embedder.embed([use.intent])
            model, vector = embedded.model, np.asarray(embedded.vectors[0], np.float32)
        use_id = ids.scoped_id(scope, "use", use.principal, use.intent)
        return StoredUse(use_id, 0, use, model, vector)

    async def _trial(self, scope: Scope, seen: ObservedUse, use: Use, held: Held) -> Trial | None:
        """Rank the use's intent for its principal without and with what is held; None where the
        index is away."""
        query = Discover(scope=scope, principal=seen.principal, intent=seen.intent, limit=PLACES)
        search = Search(query, parts_of(seen.intent), self.index, self.candidates)
        embedded = await self.embedder.embed([part.text for part in search.parts])
        rankings: list[Sequence[Target]] = []
        for support in (NO_EVIDENCE, held.support(embedded)):
            ranked, degraded = await search.ranked(embedded, support)
            if degraded:
                return None
            rankings.append([Target(each.kind, each.id) for each in ranked[:PLACES]])
        without, with_evidence = (quality(each, set(use.served)) for each in rankings)
        return Trial(use.principal, without, with_evidence)

    async def keep_embedded(self) -> None:
        """Embed intents anew after a change of the model, some at each call. Raises
        EmbedderUnavailable and StorageUnavailable."""
        model = await self.embedder.model()
        outdated = await self.store.outdated(model, _REEMBEDDED)
        if not outdated:
            return
        embedded: Embedded = await self.embedder.embed([use.use.intent for _, use in outdated])
        for (scope, use), vector in zip(outdated, embedded.vectors, strict=True):
            await self.store.embed(scope, use, embedded.model, np.asarray(vector, np.float32))


def _use(scope: Scope, seen: ObservedUse) -> Use:
    served = [
        *(Target("tool", tool) for tool in seen.tools),
        *(Target("capability", str(each)) for each in seen.capabilities),
    ]
    hour = int(seen.observed_at // _HOUR_MS)
    return Use(_voice(scope, seen.principal), seen.intent, tuple(served), hour)


def _voice(scope: Scope, principal: str) -> str:
    """The hash by which a principal is told from others of its scope."""
    return hashlib.sha256(f"{scope}\x1f{principal}".encode()).hexdigest()[:32]
