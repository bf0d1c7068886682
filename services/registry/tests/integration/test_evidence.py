"""Rankings by evidence of use, through their handlers."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import uuid4

import numpy as np
import pytest
from typing_extensions import override

from pml_common.contracts.dns import SetVisibility
from pml_common.contracts.gateway import WorkflowDataDeleted
from pml_common.contracts.scope import Scope
from pml_common.contracts.uses import ObservedUse, UseJudged
from pml_registry.adapters.postgres_evidence import PostgresEvidenceStore
from pml_registry.domain.evidence import MOST_OF_ONE, PRIOR, Use
from pml_registry.domain.ranking import EVIDENCE_WEIGHT, Kind, Target
from pml_registry.domain.trials import MIN_TRIALS, judged
from pml_registry.entrypoints.bus.on_tools_listed import on_tools_listed
from pml_registry.entrypoints.bus.on_uses_observed import (
    on_use_judged,
    on_uses_observed,
    on_workflow_data_deleted,
)
from pml_registry.ports.evidence import EvidenceStore, NewUse, Opinions
from pml_registry.ports.vectors import (
    Embedder,
    IndexUnavailable,
    Near,
    Vector,
    VectorSearch,
)
from services.registry.tests.support.builders import (
    AUTHOR,
    ELSEWHERE,
    NOON,
    SCOPE,
    analysed,
    listed,
    tool,
)
from services.registry.tests.support.store_driver import StoreDriver
from services.registry.tests.support.stores import Stores
from services.registry.tests.support.uses import UseDriver, observed, seen
from services.registry.tests.support.vectors import Renamed

pytestmark = pytest.mark.integration

FORECAST = "weather:forecast"
OTHERS = [f"fs:{word}" for word in ("read", "write", "list", "move", "stat", "link")]
WORDS = ["coat", "boots", "hat", "scarf", "gloves", "umbrella", "picnic", "sailing"]


@pytest.fixture
async def driver(stores: Stores, embedder: Embedder) -> UseDriver:
    """A scope in which no word of an intent is one of the tool that serves it."""
    others = [tool(name, "Asks whether one needs a file today.") for name in OTHERS]
    for scope in (SCOPE, ELSEWHERE):
        await on_tools_listed(listed(*others, scope=scope), stores.tools, embedder)
        forecast = listed(tool(FORECAST, "Temperatures."), server="weather", scope=scope)
        await on_tools_listed(forecast, stores.tools, embedder)
    return UseDriver.of(stores, embedder)


def weather_uses(count: int, served: str = FORECAST, hour: int = 0) -> Sequence[ObservedUse]:
    """Uses by two principals, one an hour."""
    return [
        seen(
            f"Do I need {WORDS[at % len(WORDS)]} number {at} today?",
            served,
            who=("ann", "bob")[at % 2],
            hour=hour + at,
        )
        for at in range(count)
    ]


async def test_what_served_similar_intents_is_found_once_that_has_shown_to_help(
    driver: UseDriver,
) -> None:
    intent = "Do I need a coat today?"
    zero_shot = await driver.found(intent)
    uses = weather_uses(2 * MIN_TRIALS)
    await driver.learn(*uses[:20])
    state = await driver.state()
    assert (state.used, state.trials, state.min_trials) == (False, 20, MIN_TRIALS)
    assert await driver.found(intent) == zero_shot
    await driver.learn(*uses[20:40])
    state = await driver.state()
    assert state.used
    assert state.ndcg_gain.low > 0.0
    assert state.recall_gain.mean > 0.0
    assert (await driver.found(intent))[0] == FORECAST != zero_shot[0]
    restarted = UseDriver.of(driver.stores, driver.embedder)
    assert (await restarted.found(intent))[0] == FORECAST
    assert await driver.found(intent, scope=ELSEWHERE) == zero_shot
    assert not (await driver.state(ELSEWHERE)).used


async def test_uses_that_come_to_mislead_end_it(driver: UseDriver) -> None:
    intent = "Do I need a coat today?"
    zero_shot = await driver.found(intent)
    for begin in (0, 20):
        await driver.learn(*weather_uses(40)[begin : begin + 20])
    assert (await driver.state()).used
    for begin in range(0, 60, 20):  # the same intents, served by what zero-shot finds first
        misled = weather_uses(60, zero_shot[0], hour=100)[begin : begin + 20]
        await driver.learn(*misled)
    state = await driver.state()
    assert not state.used
    assert await driver.found(intent) == zero_shot


async def test_an_attack_by_uses_and_opinions_neither_raises_nor_sinks_beyond_the_bounds(
    driver: UseDriver,
) -> None:
    intent = "Do I need a coat today?"
    honest = weather_uses(40)
    for begin in (0, 20):
        await driver.learn(*honest[begin : begin + 20])
    before = await driver.hits(intent)
    assert next(iter(before)) == FORECAST
    burst = [seen(f"Do I need a coat {at} today?", "fs:link", who="mallory") for at in range(60)]
    spread = [
        seen(f"Do I really need a coat {at} today?", "fs:link", who="mallory", hour=200 + at)
        for at in range(40)
    ]
    for uses in (burst, spread[:20], spread[20:]):
        await driver.learn(*uses)
    for use in honest:
        opinions = Opinions(use.workflow_id, useful=0.0, not_useful=1.0, judged_at=1.0)
        await driver.stores.evidence.opine(SCOPE, opinions)
    assert (await driver.state()).used
    after = await driver.hits(intent)
    most = EVIDENCE_WEIGHT * MOST_OF_ONE / (MOST_OF_ONE + PRIOR)
    assert 0.0 < after["fs:link"].from_use <= most * (1.0 - before["fs:link"].score)
    assert after[FORECAST].from_use >= before[FORECAST].from_use / 3


async def test_a_redelivered_message_changes_nothing(driver: UseDriver) -> None:
    message = await driver.learn(*weather_uses(3))
    before = await driver.stores.evidence.stand(SCOPE)
    await on_uses_observed(message, driver.learning)
    assert await driver.stores.evidence.stand(SCOPE) == before
    assert before.sequence == 3
    assert len(await driver.stores.evidence.uses(SCOPE, 0)) == 3


async def test_the_last_use_of_a_principal_for_an_intent_stands_for_all_of_them(
    driver: UseDriver,
) -> None:
    await driver.learn(seen("read it", "fs:read"), seen("read it", "fs:read", who="bob"))
    await driver.learn(seen("read it", "fs:link", hour=1))
    uses = [each.use for each in await driver.stores.evidence.uses(SCOPE, 0)]
    assert [use.served for use in uses] == [
        (Target("tool", "fs:read"),),
        (Target("tool", "fs:link"),),
    ]
    assert uses[0].principal != uses[1].principal
    assert "ann" not in {use.principal for use in uses}


async def test_deleted_data_leaves_no_intent_and_none_comes_later(driver: UseDriver) -> None:
    kept, gone, late = (seen(f"read it {word}", "fs:read") for word in ("a", "b", "c"))
    await driver.learn(kept, gone)
    held = await driver.evidence.held(SCOPE)
    assert len(held.uses) == 2
    for workflow_id in (gone.workflow_id, gone.workflow_id, late.workflow_id):
        deleted = WorkflowDataDeleted(
            scope=SCOPE,
            event_id=uuid4(),
            workflow_id=workflow_id,
            deleted_by="ann",
            deleted_at=NOON,
        )
        assert await on_workflow_data_deleted(deleted, driver.stores.evidence) == ()
    await driver.learn(late)
    await driver.stores.evidence.opine(SCOPE, Opinions(late.workflow_id, 0.0, 1.0, 1.0))
    stored = await driver.stores.evidence.uses(SCOPE, 0)
    assert [each.use.intent for each in stored] == [kept.intent]
    assert [use.intent for use in (await driver.evidence.held(SCOPE)).uses] == [kept.intent]


async def test_opinions_weigh_a_use_whenever_they_come(driver: UseDriver) -> None:
    first, second = seen("read it", "fs:read"), seen("write it", "fs:write")
    store = driver.stores.evidence
    await store.opine(SCOPE, Opinions(first.workflow_id, 0.0, 1.0, 2.0))
    await driver.learn(first, second)
    await store.opine(SCOPE, Opinions(second.workflow_id, 1.0, 2.0, 3.0))
    late = UseJudged(
        scope=SCOPE,
        event_id=uuid4(),
        workflow_id=second.workflow_id,
        useful=0.0,
        not_useful=9.0,
        judged_at=2.5,
    )
    assert await on_use_judged(late, store) == ()
    weights = [each.use.weight for each in await store.uses(SCOPE, 0)]
    assert weights == [pytest.approx(0.5), pytest.approx(0.5)]
    assert [use.weight for use in (await driver.evidence.held(SCOPE)).uses] == weights


async def test_a_private_capability_is_found_by_its_owner_alone_whatever_it_served(
    driver: UseDriver,
) -> None:
    registry = StoreDriver(driver.stores, driver.embedder)
    program = analysed(intent="temperatures of tomorrow", tools=[FORECAST])
    await registry.named("weather:tell", program)
    await registry.change("weather:tell", SetVisibility(visibility="private"))
    capability = program.capability.capability_id
    uses = [
        replaced.model_copy(update={"capabilities": (capability,), "principal": AUTHOR})
        for replaced in weather_uses(40)
    ]
    for begin in (0, 20):
        await driver.learn(*uses[begin : begin + 20])
    assert (await driver.state()).used
    intent = "Do I need a coat today?"
    assert str(capability) in (await driver.found(intent, who=AUTHOR))[:2]
    assert str(capability) not in await driver.found(intent, who="somebody else")


def store_of(stores: Stores, most_uses: int) -> EvidenceStore:
    return PostgresEvidenceStore(stores.pools, most_uses)


def new_use(intent: str, who: str) -> NewUse:
    use = Use(who, intent, (Target("tool", "fs:read"),), 0)
    return NewUse(uuid4(), uuid4(), use, "hash", np.asarray([1.0, 0.0], np.float32))


async def test_a_flood_drops_its_own_oldest_uses(stores: Stores) -> None:
    store = store_of(stores, 10)
    honest = [new_use(f"honest {at}", "ann") for at in range(3)]
    await store.learn(SCOPE, uuid4(), honest, judged)
    reset = (await store.stand(SCOPE)).reset
    flood = [new_use(f"flood {at}", "mallory") for at in range(30)]
    await store.learn(SCOPE, uuid4(), flood, judged)
    intents = [each.use.intent for each in await store.uses(SCOPE, 0)]
    assert intents == [
        *(f"honest {at}" for at in range(3)),
        *(f"flood {at}" for at in range(24, 30)),
    ]
    assert (await store.stand(SCOPE)).reset > reset


async def test_the_newest_opinions_are_kept(stores: Stores) -> None:
    store, uses = store_of(stores, 3), [new_use(f"intent {at}", "ann") for at in range(3)]
    await store.learn(SCOPE, uuid4(), uses, judged)
    for at, use in enumerate([*uses, new_use("other", "ann")]):
        await store.opine(SCOPE, Opinions(use.workflow_id, 0.0, 1.0, float(at)))
    weights = [each.use.weight for each in await store.uses(SCOPE, 0)]
    assert weights == [1.0, 0.5, 0.5]


async def test_intents_are_embedded_anew_for_another_model(
    driver: UseDriver, stores: Stores
) -> None:
    await driver.learn(seen("read it", "fs:read"))
    other = replace(driver.learning, embedder=Renamed(driver.embedder, "another"))
    await other.keep_embedded()
    (use,) = await stores.evidence.uses(SCOPE, 0)
    assert use.model == "another"
    assert np.linalg.norm(use.vector) == pytest.approx(1.0, abs=1e-3)
    assert await stores.evidence.outdated("another", 9) == []
    await other.keep_embedded()


class AwayIndex(VectorSearch):
    """An index that does not answer."""

    @override
    async def nearest(
        self, scope: Scope, kind: Kind, model: str, vector: Vector, limit: int
    ) -> Sequence[Near]:
        raise IndexUnavailable("away")


async def test_while_the_index_is_away_uses_are_kept_and_not_ranked(driver: UseDriver) -> None:
    blind = replace(driver.learning, index=AwayIndex())
    await on_uses_observed(observed(seen("read it", "fs:read")), blind)
    (stored,) = await driver.stores.evidence.uses(SCOPE, 0)
    assert not stored.use.measured
    assert (await driver.state()).trials == 0


async def test_a_message_keeps_and_ranks_a_bounded_number_of_uses(driver: UseDriver) -> None:
    uses = [seen(f"read it {at}", "fs:read", who=f"p{at}", hour=at) for at in range(60)]
    await on_uses_observed(observed(*uses), driver.learning)
    stored = await driver.stores.evidence.uses(SCOPE, 0)
    assert (len(stored), sum(each.use.measured for each in stored)) == (50, 25)
