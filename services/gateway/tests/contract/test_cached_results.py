"""Contract of stores of cached results: in Postgres, on NATS and on the bus's fake."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from uuid import uuid4

import pytest

from pml_common.bus.identity import all_services_identity
from pml_common.bus.nats_bus import NatsBus
from pml_common.contracts import ids
from pml_common.testing.memory_bus import MemoryBus
from pml_gateway.adapters.bus.results import BusResults
from pml_gateway.domain.workflow.result_cache import CachedResult, ResultKey
from pml_gateway.ports import KeptResults, WorkflowStore
from services.gateway.tests.conftest import Stores
from services.gateway.tests.support.builders import AT, CODE_HASH, ELSEWHERE, SCOPE, later, workflow

KEY = ResultKey(SCOPE, ids.capability_id(SCOPE, CODE_HASH), 1, "ab" * 32)


async def stored(workflows: WorkflowStore, key: ResultKey = KEY) -> CachedResult:
    """Return the cached result of a workflow that exists."""
    new = workflow(scope=key.scope)
    await workflows.accept(new, (new.requested,))
    return CachedResult(new.workflow_id, later(60))


@pytest.fixture(params=["stores", "fake", "nats"])
def keeper(request: pytest.FixtureRequest) -> str:
    """The store: that in Postgres, one on the bus's fake, or one on a bus at this address."""
    return request.getfixturevalue("nats_url") if request.param == "nats" else request.param


@pytest.fixture
async def results(keeper: str, stores: Stores) -> AsyncGenerator[KeptResults]:
    """Each store, empty."""
    if keeper == "stores":
        yield stores.results
        return
    bus = (
        MemoryBus()
        if keeper == "fake"
        else await NatsBus.connect(keeper, service="gateway", identity=all_services_identity())
    )
    yield BusResults(bus, lambda: AT)
    await bus.drain(1)


@pytest.mark.integration
async def test_what_is_kept_is_found_under_its_key_alone(
    results: KeptResults, stores: Stores
) -> None:
    assert await results.find(KEY) is None
    kept = await stored(stores.workflows)
    await results.keep(KEY, kept)
    assert await results.find(KEY) == kept
    others = (
        replace(KEY, scope=ELSEWHERE),
        replace(KEY, capability_id=uuid4()),
        replace(KEY, revision=2),
        replace(KEY, digest="cd" * 32),
    )
    for other in others:
        assert await results.find(other) is None


@pytest.mark.integration
async def test_of_two_that_ran_at_once_the_one_kept_last_is_found(
    results: KeptResults, stores: Stores
) -> None:
    first, second = await stored(stores.workflows), await stored(stores.workflows)
    await results.keep(KEY, first)
    await results.keep(KEY, second)
    assert await results.find(KEY) == second


@pytest.mark.integration
async def test_what_has_no_end_lasts_until_nobody_asks_for_its_revision(stores: Stores) -> None:
    lasting, kept = stores.results, replace(await stored(stores.workflows), expires_at=None)
    newer, theirs = replace(KEY, revision=2), replace(KEY, capability_id=uuid4())
    for key in (KEY, newer, theirs):
        await lasting.keep(key, kept)
    await lasting.forget(later(10_000_000))
    assert await lasting.find(KEY) == kept
    await lasting.drop(SCOPE, KEY.capability_id, but_revision=2)
    await lasting.drop(ELSEWHERE, KEY.capability_id, but_revision=9)
    assert [await lasting.find(key) for key in (KEY, newer, theirs)] == [None, kept, kept]


@pytest.mark.integration
async def test_what_is_over_is_forgotten_and_the_rest_is_not(stores: Stores) -> None:
    lasting, longer = stores.results, replace(KEY, digest="cd" * 32)
    kept = await stored(stores.workflows)
    await lasting.keep(KEY, kept)
    await lasting.keep(longer, replace(kept, expires_at=later(61)))
    await lasting.forget(later(60))
    assert await lasting.find(KEY) is None
    assert await lasting.find(longer) is not None


async def test_the_bus_keeps_nothing_that_has_no_end_or_is_over() -> None:
    bus = MemoryBus()
    results = BusResults(bus, lambda: AT)
    for expires_at in (None, AT, later(-1)):
        await results.keep(KEY, CachedResult(uuid4(), expires_at))
    assert bus.broker.cache == {}
    await results.keep(KEY, CachedResult(uuid4(), later(0.5)))
    assert len(bus.broker.cache) == 1
    await bus.drain(1)
