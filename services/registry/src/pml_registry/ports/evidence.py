"""Port of evidence: uses of a scope, how they were ranked, and whether rankings use them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from pml_common.contracts.scope import Scope
from pml_registry.domain.evidence import Use
from pml_registry.domain.trials import Standing, Trial

IntentVector = NDArray[np.float32]
"""The unit vector of an intent."""

Judge = Callable[[Sequence[Trial], Standing], Standing]
"""Judges by the trials of a scope, the newest first, and the standing before."""


@dataclass(frozen=True)
class NewUse:
    """A use to store: its id, which is that of the principal's earlier use for the same intent, the
    workflow, the embedded intent, and how it was ranked, if it was."""

    use_id: UUID
    workflow_id: UUID
    use: Use
    model: str
    vector: IntentVector = field(repr=False)
    trial: Trial | None = None


@dataclass(frozen=True)
class StoredUse:
    """A stored use; `sequence` grows with each one that is stored."""

    use_id: UUID
    sequence: int
    use: Use
    model: str
    vector: IntentVector = field(repr=False)


@dataclass(frozen=True)
class Stand:
    """The state of a scope's evidence: `sequence` is that of its last use; what was read before
    `reset` is to be read anew, since uses were removed or weigh otherwise."""

    standing: Standing = field(default_factory=Standing)
    sequence: int = 0
    reset: int = 0


@dataclass(frozen=True)
class Opinions:
    """Weights of the opinions of a workflow's run, as of a time in milliseconds of Unix time."""

    workflow_id: UUID
    useful: float
    not_useful: float
    judged_at: float


class EvidenceStore(Protocol):
    """Evidence of scopes. Every method may raise StorageUnavailable."""

    async def learn(
        self, scope: Scope, message_id: UUID, uses: Sequence[NewUse], judge: Judge
    ) -> None:
        """Store the uses of a message, once under redelivery, and the new standing; those of
        workflows whose data was deleted are left out, and of too many the oldest are dropped."""
        ...

    async def stand(self, scope: Scope) -> Stand:
        """Return the present state."""
        ...

    async def uses(self, scope: Scope, after: int) -> Sequence[StoredUse]:
        """Return the uses stored after a sequence, in their order, weighed by their opinions."""
        ...

    async def opine(self, scope: Scope, opinions: Opinions) -> None:
        """Store the opinions of a workflow's run, unless newer ones are stored."""
        ...

    async def erase(self, scope: Scope, workflow_id: UUID) -> None:
        """Remove the use of a workflow; keep none that comes later."""
        ...

    async def outdated(self, model: str, limit: int) -> Sequence[tuple[Scope, StoredUse]]:
        """Return uses of all scopes whose intents are embedded with another model."""
        ...

    async def embed(self, scope: Scope, use: StoredUse, model: str, vector: IntentVector) -> None:
        """Store the vector of another model, if the use is still the same."""
        ...
