"""The uses of scopes that a process keeps: how often the store is asked, and for what."""

from collections.abc import Sequence
from uuid import uuid4

import numpy as np
import pytest
from typing_extensions import override

from pml_common.contracts.scope import Scope
from pml_common.storage.scoped import ScopedPools
from pml_registry.adapters.postgres_evidence import PostgresEvidenceStore
from pml_registry.application.evidence import LOOK_EVERY_S, Evidence
from pml_registry.domain.evidence import Use
from pml_registry.domain.ranking import Target
from pml_registry.domain.trials import Standing, Trial
from pml_registry.ports.evidence import EvidenceStore, NewUse, Opinions, Stand, StoredUse
from pml_registry.ports.vectors import Embedded
from services.registry.tests.support.builders import ELSEWHERE, SCOPE
from services.registry.tests.support.stores import Stores

pytestmark = pytest.mark.integration

READ = Target("tool", "fs:read")
ASKED = Embedded("hash", [[1.0, 0.0]])


class CountingStore(PostgresEvidenceStore):
    """Counts looks, and the uses that were read."""

    def __init__(self, pools: ScopedPools) -> None:
        super().__init__(pools)
        self.looks = 0
        self.read: list[int] = []

    @override
    async def stand(self, scope: Scope) -> Stand:
        self.looks += 1
        return await super().stand(scope)

    @override
    async def uses(self, scope: Scope, after: int) -> Sequence[StoredUse]:
        found = await super().uses(scope, after)
        self.read.append(len(found))
        return found


@pytest.fixture
def store(stores: Stores) -> CountingStore:
    """An empty store."""
    return CountingStore(stores.pools)


class Clock:
    """A clock that stands still."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def new_use(intent: str, hour: int = 0, model: str = "hash") -> NewUse:
    vector = np.asarray([1.0, 0.0], np.float32)
    return NewUse(uuid4(), uuid4(), Use("ann", intent, (READ,), hour), model, vector)


async def learn(store: EvidenceStore, *uses: NewUse, scope: Scope = SCOPE) -> None:
    def always(trials: Sequence[Trial], before: Standing) -> Standing:
        return Standing(used=True)

    await store.learn(scope, uuid4(), uses, always)


async def test_a_scope_without_evidence_is_looked_at_once_a_second_and_nothing_is_read(
    store: CountingStore,
) -> None:
    clock = Clock()
    evidence = Evidence(store, clock=clock)
    for _ in range(5):
        assert await evidence.used(SCOPE) is None
    assert store.looks == 1
    clock.now = LOOK_EVERY_S
    assert await evidence.used(SCOPE) is None
    assert (store.looks, store.read) == (2, [])


async def test_uses_are_read_once_and_later_those_that_are_new(store: CountingStore) -> None:
    evidence = Evidence(store, look_every_s=0.0)
    first = new_use("read it")
    await learn(store, first, new_use("read that"))
    for _ in range(3):
        held = await evidence.used(SCOPE)
        assert held is not None
        assert held.support(ASKED)[READ] > 0.0
    assert store.read == [2]
    await learn(store, new_use("read more", hour=1))
    assert len((await evidence.held(SCOPE)).uses) == 3
    assert store.read == [2, 1]
    await store.opine(SCOPE, Opinions(first.workflow_id, 0.0, 1.0, 1.0))
    assert min(use.weight for use in (await evidence.held(SCOPE)).uses) == 0.5
    assert store.read == [2, 1, 3]


async def test_uses_embedded_with_another_model_support_nothing(store: CountingStore) -> None:
    await learn(store, new_use("read it", model="former"))
    held = await Evidence(store).held(SCOPE)
    assert held.support(ASKED) == {}
    assert held.vector_of("read it", "hash") is None
    assert held.vector_of("read it", "former") is not None


@pytest.mark.parametrize("most_scopes", [1, 2])
async def test_the_scopes_used_last_are_kept(store: CountingStore, most_scopes: int) -> None:
    evidence = Evidence(store, look_every_s=0.0, most_scopes=most_scopes)
    for scope in (SCOPE, ELSEWHERE):
        await learn(store, new_use("read it"), scope=scope)
    for scope in (SCOPE, ELSEWHERE, SCOPE):
        await evidence.used(scope)
    assert len(store.read) == (3 if most_scopes == 1 else 2)
