"""Uses as the learner observes them, and what the registry makes of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

from pml_common.contracts.registry import Discover, DiscoveryHit
from pml_common.contracts.scope import Scope
from pml_common.contracts.uses import EvidenceState, ObservedUse, ShowEvidence, UsesObserved
from pml_registry.application.evidence import Evidence
from pml_registry.application.learning_uses import UseLearning
from pml_registry.entrypoints.bus.on_discover import on_discover
from pml_registry.entrypoints.bus.on_show_evidence import on_show_evidence
from pml_registry.entrypoints.bus.on_uses_observed import on_uses_observed
from pml_registry.ports.vectors import Embedder
from services.registry.tests.support.builders import SCOPE
from services.registry.tests.support.stores import Stores

HOUR_MS = 3_600_000.0


def seen(
    intent: str,
    *tools: str,
    who: str = "ann",
    hour: float = 0,
    capabilities: Sequence[UUID] = (),
) -> ObservedUse:
    """Build a use in a workflow of its own."""
    return ObservedUse(
        workflow_id=uuid4(),
        principal=who,
        intent=intent,
        tools=tools,
        capabilities=tuple(capabilities),
        observed_at=hour * HOUR_MS,
    )


def observed(*uses: ObservedUse, scope: Scope = SCOPE) -> UsesObserved:
    """Build the message."""
    return UsesObserved(scope=scope, event_id=uuid4(), workflow_id=uses[-1].workflow_id, uses=uses)


@dataclass(frozen=True)
class UseDriver:
    """Learns and discovers as one process; a new one is a process that starts."""

    stores: Stores
    embedder: Embedder
    evidence: Evidence

    @classmethod
    def of(cls, stores: Stores, embedder: Embedder) -> "UseDriver":
        """Build one that looks at the state each time."""
        return cls(stores, embedder, Evidence(stores.evidence, look_every_s=0.0))

    @property
    def learning(self) -> UseLearning:
        """The use case."""
        stores = self.stores
        return UseLearning(
            stores.evidence, self.evidence, self.embedder, stores.index, stores.candidates
        )

    async def learn(self, *uses: ObservedUse, scope: Scope = SCOPE) -> UsesObserved:
        """Handle one message with these uses; return it."""
        message = observed(*uses, scope=scope)
        assert await on_uses_observed(message, self.learning) == ()
        return message

    async def found(
        self, intent: str, *, scope: Scope = SCOPE, who: str | None = None
    ) -> Sequence[str]:
        """Ids of what is discovered, best first."""
        return list(await self.hits(intent, scope=scope, who=who))

    async def hits(
        self, intent: str, *, scope: Scope = SCOPE, who: str | None = None
    ) -> Mapping[str, DiscoveryHit]:
        """Hits by id, best first."""
        query = Discover(scope=scope, intent=intent, principal=who)
        index, candidates = self.stores.index, self.stores.candidates
        page = await on_discover(query, self.embedder, index, candidates, self.evidence)
        return {str(hit.id): hit for hit in page.hits}

    async def state(self, scope: Scope = SCOPE) -> EvidenceState:
        """The state that `meta:stats` shows."""
        return await on_show_evidence(ShowEvidence(scope=scope), self.stores.evidence)
