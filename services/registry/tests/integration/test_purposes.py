"""Descriptions of versions: who gives them, which are inherited, how an owner changes one."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from uuid import uuid4

import pytest
from typing_extensions import override

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.dns import Fork, Rename
from pml_common.contracts.registry import CapabilityChanged, Discover
from pml_registry.application.described import found_by
from pml_registry.domain.visibility import Viewer
from pml_registry.entrypoints.bus.on_discover import on_discover
from pml_registry.ports.vectors import Embedded, Embedder
from services.registry.tests.support.builders import (
    AUTHOR,
    OTHER_HASH,
    SCOPE,
    SIMILAR_HASH,
    UNNAMED,
    analysed,
    learning_update,
)
from services.registry.tests.support.store_driver import StoreDriver
from services.registry.tests.support.stores import Stores

pytestmark = pytest.mark.integration

COUNTS = "count the lines of a text"
GREETS = "greet somebody"


async def described(registry: StoreDriver, reference: str) -> str:
    return (await registry.resolve(reference)).description


async def score(stores: Stores, embedder: Embedder, intent: str, name: str) -> float:
    """The score of a capability for an intent; 0 where it is not found."""
    query = Discover(scope=SCOPE, intent=intent, type="capability")
    page = await on_discover(query, embedder, stores.index, stores.candidates)
    return next((hit.score for hit in page.hits if hit.name == name), 0.0)


async def test_the_intent_of_a_refused_request_describes_nothing(registry: StoreDriver) -> None:
    await registry.named("text:greet", analysed(OTHER_HASH, intent=GREETS))
    with pytest.raises(QueryFailed, match="is other code"):
        await registry.reserve("text:greet", analysed(intent="zzz nonsense"))
    assert await described(registry, UNNAMED) == ""
    await registry.named("text:count", analysed(intent=COUNTS))
    assert await described(registry, "text:count") == COUNTS


async def test_the_intent_of_a_failed_run_describes_nothing(registry: StoreDriver) -> None:
    failed = analysed(intent="zzz nonsense")
    await registry.reserve("text:count", failed)
    await registry.settle(failed, succeeded=False)
    await registry.learned(learning_update(1, successes=0))
    assert await described(registry, UNNAMED) == ""


async def test_the_run_that_names_a_program_says_what_it_is_for(registry: StoreDriver) -> None:
    await registry.analysed(analysed(intent="try it"))
    await registry.learned(learning_update(intent="try it"))
    assert await described(registry, UNNAMED) == "try it"
    await registry.named("text:count", analysed(intent=COUNTS))
    assert await described(registry, "text:count") == COUNTS


async def test_a_name_without_an_intent_keeps_what_is_known(registry: StoreDriver) -> None:
    await registry.analysed(analysed())
    await registry.learned(learning_update(intent=COUNTS))
    await registry.named("text:count", analysed())
    await registry.named("text:lines", analysed(intent=GREETS))
    assert await described(registry, "text:count") == COUNTS


async def test_an_unnamed_program_is_described_by_its_first_success(
    registry: StoreDriver, stores: Stores, embedder: Embedder
) -> None:
    await registry.analysed(analysed(intent="zzz nonsense"))
    await registry.learned(learning_update(1, successes=0))
    succeeded = learning_update(2, successes=1, intent=COUNTS)
    await registry.learned(succeeded)
    await registry.learned(succeeded)
    await registry.learned(learning_update(3, successes=2, intent=GREETS))
    assert await described(registry, UNNAMED) == COUNTS
    found = await score(stores, embedder, COUNTS, UNNAMED)
    assert found > await score(stores, embedder, "zzz nonsense", UNNAMED)


async def test_a_program_that_is_named_meanwhile_is_described_under_its_new_name(
    registry: StoreDriver, stores: Stores, embedder: Embedder
) -> None:
    await registry.analysed(analysed())
    capability = SCOPE, analysed().capability.capability_id
    texts = (await stores.capabilities.undescribed([capability]))[capability]
    found = await found_by(texts.name, replace(texts, description=COUNTS), embedder)
    await registry.named("text:count", analysed())
    await stores.capabilities.describe_first(*capability, texts.name, found)
    assert await described(registry, "text:count") == ""
    await registry.learned(learning_update(intent=COUNTS))
    assert await described(registry, "text:count") == COUNTS
    assert await stores.capabilities.undescribed([capability]) == {}


async def test_an_update_without_an_intent_inherits_the_description(
    registry: StoreDriver, stores: Stores, embedder: Embedder
) -> None:
    await registry.named("text:count", analysed(intent=COUNTS))
    before = await score(stores, embedder, COUNTS, "text:count")
    better = analysed(SIMILAR_HASH)
    await registry.reserve("text:count", better, update=True)
    await registry.settle(better)
    record = await registry.resolve("text:count")
    assert (record.version, record.description) == (2, COUNTS)
    assert await score(stores, embedder, COUNTS, "text:count") == pytest.approx(before)


async def test_each_version_has_the_intent_of_its_own_run(registry: StoreDriver) -> None:
    await registry.named("text:count", analysed(intent=COUNTS))
    better = analysed(SIMILAR_HASH, intent="count lines and words")
    await registry.reserve("text:count", better, update=True)
    await registry.settle(better)
    assert await described(registry, "text:count") == "count lines and words"
    assert await described(registry, "text:count@1") == COUNTS
    versions = (await registry.whois("text:count")).versions
    assert [each.description for each in versions] == ["count lines and words", COUNTS]


async def test_its_owner_describes_a_version_and_it_is_found_by_that(
    registry: StoreDriver, stores: Stores, embedder: Embedder
) -> None:
    await registry.named("text:count", analysed(intent="zzz nonsense"))
    before = await score(stores, embedder, COUNTS, "text:count")
    registry.published.clear()
    changed = await registry.described("text:count", f" {COUNTS} ")
    assert (changed.changed, changed.record.description) == (True, COUNTS)
    assert await score(stores, embedder, COUNTS, "text:count") > before
    (said,) = registry.published
    assert isinstance(said, CapabilityChanged)
    assert (said.change, said.described, said.version) == ("labelled", True, 1)
    newest = (await registry.history("text:count")).entries[0]
    assert (newest.change, newest.principal) == ("labelled", AUTHOR)
    assert newest.details == {"description": COUNTS, "before": "zzz nonsense"}
    assert not (await registry.described("text:count", COUNTS)).changed


async def test_a_description_is_of_the_version_that_is_meant(registry: StoreDriver) -> None:
    await registry.named("text:count", analysed(intent=COUNTS))
    better = analysed(SIMILAR_HASH)
    await registry.reserve("text:count", better, update=True)
    await registry.settle(better)
    await registry.described("text:count@1", "count lines as before")
    assert await described(registry, "text:count") == COUNTS
    assert await described(registry, "text:count@1") == "count lines as before"


async def test_a_repeated_request_describes_once(registry: StoreDriver) -> None:
    await registry.named("text:count", analysed(intent=GREETS))
    request = uuid4()
    await registry.described("text:count", "first", request_id=request)
    await registry.described("text:count", "second")
    repeated = await registry.described("text:count", "first", request_id=request)
    assert (repeated.changed, repeated.record.description) == (True, "second")


async def test_nobody_else_describes_it(registry: StoreDriver) -> None:
    await registry.named("text:count", analysed(intent=COUNTS))
    with pytest.raises(QueryFailed, match="only its owner or an admin"):
        await registry.described("text:count", GREETS, by=Viewer(SCOPE, "mallory"))
    with pytest.raises(QueryFailed, match="is blank"):
        await registry.described("text:count", " \n")
    assert await described(registry, "text:count") == COUNTS
    admin = Viewer(SCOPE, "approver:noor", is_admin=True)
    assert (await registry.described("text:count", GREETS, by=admin)).record.description == GREETS


async def test_a_fork_is_for_what_its_source_was_and_then_its_own(registry: StoreDriver) -> None:
    await registry.named("text:count", analysed(intent=COUNTS))
    await registry.change("text:count", Fork(name="text:mine"))
    assert await described(registry, "text:mine") == COUNTS
    await registry.described("text:mine", GREETS)
    assert await described(registry, "text:mine") == GREETS
    assert await described(registry, "text:count") == COUNTS


async def test_a_description_that_was_not_published_is_published_later(
    registry: StoreDriver,
) -> None:
    await registry.named("text:count", analysed(intent=COUNTS))
    registry.published.clear()
    registry.is_away = True
    await registry.described("text:count", GREETS)
    registry.is_away = False
    await registry.service.publish_overdue()
    (said,) = registry.published
    assert isinstance(said, CapabilityChanged)
    assert said.described


class Meanwhile(Embedder):
    """An embedder during whose next answers something else happens, each once."""

    def __init__(self, inner: Embedder, *others: Callable[[], Awaitable[object]]) -> None:
        self._inner = inner
        self._others = list(others)

    @override
    async def model(self) -> str:
        return await self._inner.model()

    @override
    async def embed(self, texts: Sequence[str]) -> Embedded:
        if self._others:
            await self._others.pop(0)()
        return await self._inner.embed(texts)


async def found_in(stores: Stores, name: str) -> str:
    """The document that the latest version under a name is found by."""
    async with stores.pools.across() as session:
        return await session.fetchval(
            "SELECT document FROM workflow_pattern "
            "JOIN capability USING (org, project, pattern_id) WHERE capability.name = $1",
            name,
        )


async def test_a_rename_while_a_description_is_embedded_is_not_lost(
    registry: StoreDriver, stores: Stores, embedder: Embedder
) -> None:
    await registry.named("text:count", analysed(intent="zzz nonsense"))
    meanwhile = Meanwhile(embedder, lambda: registry.change("text:count", Rename(name="text:sum")))
    await StoreDriver(stores, meanwhile).described("text:count", COUNTS)
    assert await described(registry, "text:sum") == COUNTS
    document = await found_in(stores, "text:sum")
    assert ("sum" in document, COUNTS in document) == (True, True)


async def test_a_description_while_a_new_name_is_embedded_is_not_lost(
    registry: StoreDriver, stores: Stores, embedder: Embedder
) -> None:
    await registry.named("text:count", analysed(intent="zzz nonsense"))
    meanwhile = Meanwhile(embedder, lambda: registry.described("text:count", COUNTS))
    await StoreDriver(stores, meanwhile).change("text:count", Rename(name="text:sum"))
    assert await described(registry, "text:sum") == COUNTS
    document = await found_in(stores, "text:sum")
    assert ("sum" in document, COUNTS in document) == (True, True)


async def test_what_others_change_all_the_time_is_refused_at_last(
    registry: StoreDriver, stores: Stores, embedder: Embedder
) -> None:
    await registry.named("text:count", analysed(intent=COUNTS))

    def renamed(number: int) -> Callable[[], Awaitable[object]]:
        return lambda: registry.change("text:count", Rename(name=f"text:count_{number}"))

    meanwhile = Meanwhile(embedder, *map(renamed, range(9)))
    with pytest.raises(QueryFailed, match="changed too often by others: try again"):
        await StoreDriver(stores, meanwhile).described("text:count", GREETS)
    assert await described(registry, "text:count") == COUNTS


async def test_a_version_that_is_named_by_its_id_is_described(registry: StoreDriver) -> None:
    await registry.named("text:count", analysed(intent=COUNTS))
    first = (await registry.resolve("text:count")).capability_id
    better = analysed(SIMILAR_HASH)
    await registry.reserve("text:count", better, update=True)
    await registry.settle(better)
    await registry.described(str(first), GREETS)
    assert await described(registry, "text:count@1") == GREETS
    assert await described(registry, "text:count") == COUNTS


async def test_learning_again_leaves_descriptions_as_they_are(registry: StoreDriver) -> None:
    await registry.analysed(analysed())
    await registry.learned(learning_update(1, intent=COUNTS))
    await registry.learned(learning_update(5))  # of a rebuild: it has no intent
    assert await described(registry, UNNAMED) == COUNTS
    await registry.named("text:greet", analysed(OTHER_HASH))
    await registry.learned(learning_update(2, code_hash=OTHER_HASH))
    assert await described(registry, "text:greet") == ""
