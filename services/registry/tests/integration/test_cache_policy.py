"""Cache policies of capabilities."""

import pytest

from pml_common.bus.errors import QueryFailed
from pml_common.contracts.caching import CachePolicy
from pml_common.contracts.dns import SetVisibility
from pml_common.contracts.tool import ToolAnnotations
from pml_registry.domain.visibility import Viewer
from pml_registry.entrypoints.bus.on_tools_listed import on_tools_listed
from pml_registry.ports.vectors import Embedder
from services.registry.tests.support.builders import (
    AUTHOR,
    ELSEWHERE,
    SCOPE,
    analysed,
    learning_update,
    listed,
    tool,
)
from services.registry.tests.support.store_driver import StoreDriver
from services.registry.tests.support.stores import Stores

pytestmark = pytest.mark.integration

MEMOIZE = {"policy": "memoize"}
FORCED = {"policy": "persistent", "force": True}


@pytest.fixture
async def reading(registry: StoreDriver, stores: Stores, embedder: Embedder) -> StoreDriver:
    """A registry with the read-only capability `fs:look`."""
    reads = ToolAnnotations(read_only=True)
    tools = [tool(one).model_copy(update={"annotations": reads}) for one in ("fs:stat", "fs:read")]
    await on_tools_listed(listed(*tools), stores.tools, embedder)
    await registry.named("fs:look", analysed())
    return registry


async def test_nothing_is_cached_by_default(reading: StoreDriver) -> None:
    assert (await reading.resolve("fs:look")).cache == CachePolicy()


async def test_a_policy_is_stored_and_setting_it_again_changes_nothing(
    reading: StoreDriver,
) -> None:
    chosen = {"policy": "memoize", "ttl_s": 600}
    first = await reading.set_cache("cap:fs:look", chosen)
    assert first.cache == CachePolicy(policy="memoize", ttl_s=600, revision=1)
    assert await reading.set_cache("fs:look", chosen) == first
    assert await reading.resolve("fs:look") == first


async def test_every_change_has_a_revision_of_its_own(reading: StoreDriver) -> None:
    choices: list[dict[str, object]] = [
        {"policy": "memoize"},
        {"policy": "persistent"},
        {"policy": "persistent", "ttl_s": 60},
        {"policy": "persistent", "ttl_s": 60, "force": True},
        {"policy": "none"},
    ]
    set_so = [(await reading.set_cache("fs:look", chosen)).cache for chosen in choices]
    assert [cache.revision for cache in set_so] == [1, 2, 3, 4, 5]
    assert [(cache.policy, cache.ttl_s, cache.force) for cache in set_so] == [
        ("memoize", 3600, False),
        ("persistent", None, False),
        ("persistent", 60, False),
        ("persistent", 60, True),
        ("none", None, False),
    ]


async def test_naming_and_learning_keep_the_policy(registry: StoreDriver) -> None:
    await registry.analysed(analysed())
    unnamed = await registry.resolve("unnamed_a7f3")
    chosen = await registry.set_cache(str(unnamed.capability_id), FORCED)
    await registry.named("fs:look", analysed())
    await registry.learned(learning_update(1))
    renamed = await registry.resolve("fs:look")
    assert (renamed.cache, renamed.usage.count) == (chosen.cache, 1)


async def test_a_capability_with_effects_is_cached_only_with_force(registry: StoreDriver) -> None:
    await registry.named("fs:look", analysed())
    with pytest.raises(QueryFailed, match="fs:stat, fs:read, which are not marked") as refused:
        await registry.set_cache("fs:look", MEMOIZE)
    assert refused.value.code == "conflict"
    assert (await registry.resolve("fs:look")).cache == CachePolicy()
    forced = await registry.set_cache("fs:look", {**MEMOIZE, "force": True})
    assert forced.cache == CachePolicy(policy="memoize", ttl_s=3600, force=True, revision=1)


async def test_another_scope_cannot_set_it(reading: StoreDriver) -> None:
    for reference in ("fs:look", "fs:loom"):
        with pytest.raises(QueryFailed) as refused:
            await reading.set_cache(reference, MEMOIZE, Viewer(ELSEWHERE, AUTHOR))
        assert refused.value.code == "not_found"
    assert (await reading.resolve("fs:look")).cache == CachePolicy()


async def test_only_the_owner_or_an_admin_sets_it(reading: StoreDriver) -> None:
    with pytest.raises(QueryFailed, match="only its owner or an admin") as refused:
        await reading.set_cache("fs:look", MEMOIZE, Viewer(SCOPE, "noor"))
    assert refused.value.code == "conflict"
    assert (await reading.resolve("fs:look")).cache == CachePolicy()
    by_admin = await reading.set_cache("fs:look", MEMOIZE, Viewer(SCOPE, "noor", is_admin=True))
    assert by_admin.cache.policy == "memoize"


async def test_the_private_capability_of_another_is_not_found(reading: StoreDriver) -> None:
    await reading.change("fs:look", SetVisibility(visibility="private"))
    with pytest.raises(QueryFailed, match="no capability 'fs:look'") as refused:
        await reading.set_cache("fs:look", MEMOIZE, Viewer(SCOPE, "noor"))
    assert refused.value.code == "not_found"
