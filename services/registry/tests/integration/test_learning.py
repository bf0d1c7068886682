"""Learning updates and listing of capabilities."""

import asyncio

import pytest

from pml_common.bus.errors import QueryFailed, Retryable
from pml_common.contracts.registry import ListCapabilities
from pml_registry.entrypoints.bus.on_learning_updated import on_learning_updated
from pml_registry.entrypoints.bus.on_list_capabilities import on_list_capabilities
from pml_registry.ports.vectors import Embedder
from services.registry.tests.support.builders import (
    ELSEWHERE,
    HASH,
    OTHER_HASH,
    SCOPE,
    UNNAMED,
    analysed,
    learning_update,
)
from services.registry.tests.support.store_driver import StoreDriver, changes, published
from services.registry.tests.support.stores import Stores

pytestmark = pytest.mark.integration

ALL = ListCapabilities(scope=SCOPE, include_unlisted=True)


async def test_the_first_success_lists_a_capability(registry: StoreDriver) -> None:
    await registry.analysed(analysed())
    assert changes(await registry.learned(learning_update(1, successes=0))) == [
        (UNNAMED, "learned")
    ]
    assert await registry.names(unlisted=False) == []
    assert changes(await registry.learned(learning_update(2, successes=1))) == [(UNNAMED, "listed")]
    assert await registry.names(unlisted=False) == [UNNAMED]
    record = await registry.resolve(UNNAMED)
    assert (record.usage.count, record.usage.success_count, record.listed) == (2, 1, True)
    assert record.learning == learning_update(2).learning


async def test_of_updates_in_any_order_the_newest_is_stored(registry: StoreDriver) -> None:
    await registry.analysed(analysed())
    for revision in (2, 5, 1, 4, 3):
        await registry.learned(learning_update(revision))
    assert (await registry.resolve(UNNAMED)).usage.count == 5


async def test_of_concurrent_updates_the_newest_is_stored(registry: StoreDriver) -> None:
    await registry.analysed(analysed())
    await asyncio.gather(
        *(registry.learned(learning_update(revision)) for revision in range(1, 11))
    )
    assert (await registry.resolve(UNNAMED)).usage.count == 10


async def test_an_update_delivered_twice_publishes_the_same(registry: StoreDriver) -> None:
    await registry.analysed(analysed())
    updated = learning_update(1)
    messages = await registry.learned(updated)
    await registry.learned(learning_update(2))
    assert list(await registry.learned(updated)) == list(messages)
    assert (await registry.resolve(UNNAMED)).usage.count == 2


async def test_of_a_batch_each_capability_is_published_once(
    registry: StoreDriver, stores: Stores, embedder: Embedder
) -> None:
    await registry.analysed(analysed())
    await registry.named("fs:ensure", analysed(OTHER_HASH))
    updates = [learning_update(revision) for revision in (3, 1, 4, 2)]
    other = learning_update(2, code_hash=OTHER_HASH, successes=0)
    handled = await on_learning_updated([*updates, other], stores.capabilities, embedder)
    assert {cause: len(facts) for cause, facts in handled.facts.items()} == {
        updates[2].event_id: 1,
        other.event_id: 1,
    }
    assert changes(published(handled, [*updates, other])) == [
        (UNNAMED, "listed"),
        ("fs:ensure", "learned"),
    ]
    assert (await registry.resolve(UNNAMED)).usage.count == 4
    again = await on_learning_updated(
        [updates[1], other, updates[2]], stores.capabilities, embedder
    )
    assert {cause: list(facts) for cause, facts in again.facts.items() if facts} == {
        cause: list(facts) for cause, facts in handled.facts.items()
    }


async def test_batches_that_share_updates_store_the_newest(
    registry: StoreDriver, stores: Stores, embedder: Embedder
) -> None:
    hashes = [HASH, OTHER_HASH, "beef" * 16]
    await registry.analysed(*(analysed(each) for each in hashes))
    updates = [learning_update(n, code_hash=each) for n in range(1, 9) for each in hashes]
    await asyncio.gather(
        on_learning_updated(updates[:18], stores.capabilities, embedder),
        on_learning_updated(updates[:5:-1], stores.capabilities, embedder),
        on_learning_updated(updates[3:21], stores.capabilities, embedder),
    )
    records = (await stores.capabilities.page(ALL)).capabilities
    assert [(record.usage.count, record.listed) for record in records] == [(8, True)] * 3


async def test_in_a_batch_updates_of_an_unknown_capability_alone_are_retried(
    registry: StoreDriver, stores: Stores, embedder: Embedder
) -> None:
    await registry.analysed(analysed())
    known, unknown = learning_update(1), learning_update(1, code_hash=OTHER_HASH)
    handled = await on_learning_updated([unknown, known], stores.capabilities, embedder)
    assert list(handled.failed) == [unknown.event_id]
    assert [cause for cause, facts in handled.facts.items() if facts] == [known.event_id]
    await registry.named("fs:ensure", analysed(OTHER_HASH))
    assert changes(await registry.learned(known, unknown)) == [
        (UNNAMED, "listed"),
        ("fs:ensure", "learned"),
    ]


async def test_an_update_of_an_unknown_capability_is_retried_later(
    registry: StoreDriver,
) -> None:
    updated = learning_update(1)
    with pytest.raises(Retryable):
        await registry.learned(updated)
    await registry.analysed(analysed())
    assert changes(await registry.learned(updated)) == [(UNNAMED, "listed")]


async def test_capabilities_are_listed_most_used_first_in_pages(
    registry: StoreDriver, stores: Stores, embedder: Embedder
) -> None:
    for code_hash, name in ((HASH, "fs:b"), (OTHER_HASH, "fs:c"), ("beef" * 16, "fs:a")):
        await registry.named(name, analysed(code_hash))
    await registry.learned(learning_update(4, code_hash=OTHER_HASH))
    assert await registry.names() == ["fs:c", "fs:a", "fs:b"]
    query = ListCapabilities(scope=SCOPE, include_unlisted=True, limit=1, offset=1)
    page = await on_list_capabilities(query, stores.capabilities)
    assert ([record.name for record in page.capabilities], page.total) == (["fs:a"], 3)
    first = await on_list_capabilities(query.model_copy(update={"offset": 0}), stores.capabilities)
    await registry.named("fs:anew", analysed("f00d" * 16))
    await registry.learned(learning_update(9, code_hash="f00d" * 16))
    after = {"scope": SCOPE, "include_unlisted": True, "cursor": first.next_cursor}
    rest = await on_list_capabilities(ListCapabilities.model_validate(after), stores.capabilities)
    shown = [record.name for record in (*first.capabilities, *rest.capabilities)]
    assert (shown, rest.next_cursor) == (["fs:c", "fs:a", "fs:b"], None), "whatever comes meanwhile"
    foreign = query.model_copy(update={"cursor": "a"})
    with pytest.raises(QueryFailed, match="next_cursor"):
        await on_list_capabilities(foreign, stores.capabilities)


async def test_no_scope_sees_or_blocks_another(registry: StoreDriver) -> None:
    await registry.named("fs:ensure", analysed())
    await registry.named("fs:ensure", analysed(scope=ELSEWHERE))
    await registry.learned(learning_update(3, scope=ELSEWHERE))
    ours = await registry.resolve("fs:ensure")
    assert (ours.scope, ours.usage.count) == (SCOPE, 0)
    with pytest.raises(QueryFailed):
        await registry.resolve(str(ours.capability_id), scope=ELSEWHERE)
    assert await registry.names(scope=ELSEWHERE) == ["fs:ensure"]
