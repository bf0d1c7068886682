"""A version that fails: flagged, sunk, its last good version offered, and well again; on every kind
of store."""

import pytest

from pml_common.contracts.capability import Health
from pml_common.contracts.dns import SetVisibility, Yank
from pml_common.contracts.learner import LearningUpdated
from pml_common.contracts.registry import CapabilityChanged, CapabilityHit, Discover
from pml_common.contracts.scope import Scope
from pml_registry.domain.visibility import Viewer
from pml_registry.entrypoints.bus.on_discover import on_discover
from pml_registry.ports.vectors import Embedder
from services.registry.tests.support.builders import (
    HASH,
    OTHER_HASH,
    SCOPE,
    SIMILAR_HASH,
    analysed,
    learning_update,
)
from services.registry.tests.support.store_driver import StoreDriver
from services.registry.tests.support.stores import Stores

pytestmark = pytest.mark.integration

GOOD, BAD = (0.83, 1.0, 1.0), (0.0, 0.17, 0.45)
NEIGHBOUR = Viewer(Scope(org="acme", project="shop"), "agent-8")
TOLD = (
    "fs:ensure: version 2 is failing: its success rate is 17% after 17 judged runs; "
    "call fs:ensure@1, which is healthy"
)


async def learned(
    driver: StoreDriver, *updates: LearningUpdated
) -> list[tuple[str, Health | None]]:
    """Learn, and return the published names and health."""
    messages = await driver.learned(*updates)
    return [(each.name, each.health) for each in messages if isinstance(each, CapabilityChanged)]


def failing(revision: int = 20) -> LearningUpdated:
    return learning_update(revision, code_hash=SIMILAR_HASH, successes=3, value=BAD, faults=(2, 1))


async def test_a_change_of_health_is_told_once(known: StoreDriver) -> None:
    assert await learned(known, learning_update(3)) == [("fs:ensure", None)]
    assert await learned(known, learning_update(9, value=GOOD)) == [("fs:ensure", "healthy")]
    assert await learned(known, learning_update(10, value=GOOD)) == [("fs:ensure", None)]
    update = failing()
    assert await learned(known, update) == [("fs:ensure", "failing")]
    assert await learned(known, update) == [("fs:ensure", "failing")]  # redelivered
    again = learning_update(40, code_hash=SIMILAR_HASH, value=GOOD)
    assert await learned(known, again) == [("fs:ensure", "healthy")]


async def test_the_last_good_version_is_offered_until_it_is_well_again(known: StoreDriver) -> None:
    await known.learned(learning_update(20, value=GOOD), failing())
    record = await known.resolve("fs:ensure")
    assert (record.version, record.health, record.last_good) == (2, "failing", "fs:ensure@1")
    assert record.notices == (TOLD,)
    usage = record.usage
    assert (usage.caller_faults, usage.environment_faults, usage.judged) == (2, 1, 17)
    assert (usage.low, usage.value, usage.high) == BAD
    by_program, earlier = await known.describe("fs_ensure", "fs:ensure@1")
    assert by_program.notices == (TOLD,)
    assert earlier.notices == ()
    good = await known.resolve("fs:ensure@1")
    assert (good.health, good.last_good, good.notices) == ("healthy", None, ())
    found = await known.lookup("fs:ensure")
    assert (found.health, found.last_good, found.notices) == ("failing", "fs:ensure@1", (TOLD,))
    whois = await known.whois("fs:ensure")
    assert [each.health for each in whois.versions] == ["failing", "healthy"]
    assert whois.usage == usage
    total = whois.record_usage
    assert total is not None
    assert (total.count, total.caller_faults, total.judged) == (40, 2, 37)
    (listed,) = (await known.query(namespace="fs")).records
    assert (listed.health, listed.last_good) == ("failing", "fs:ensure@1")
    assert listed.usage == usage
    await known.learned(learning_update(40, code_hash=SIMILAR_HASH, value=GOOD))
    record = await known.resolve("fs:ensure")
    assert (record.health, record.last_good, record.notices) == ("healthy", None, ())


async def test_a_yanked_or_unproven_version_is_not_offered(known: StoreDriver) -> None:
    await known.learned(failing())
    record = await known.resolve("fs:ensure")
    assert record.last_good is None
    assert record.notices[0].endswith("; no earlier version is healthy")
    await known.learned(learning_update(20, value=GOOD))
    assert (await known.resolve("fs:ensure")).last_good == "fs:ensure@1"
    await known.change("fs:ensure@1", Yank(reason="leaks"))
    assert (await known.resolve("fs:ensure")).last_good is None
    (by_program,) = await known.describe("fs_ensure")
    assert by_program.notices[0].endswith("; no earlier version is healthy")


async def test_other_scopes_are_offered_it_by_its_whole_name(known: StoreDriver) -> None:
    await known.learned(learning_update(20, value=GOOD), failing())
    await known.change("fs:ensure", SetVisibility(visibility="org"))
    found = await known.lookup("cap:acme.webapp:fs:ensure", NEIGHBOUR)
    assert found.last_good == f"{found.fqdn}@1"
    assert f"call {found.fqdn}@1" in found.notices[0]
    good = await known.lookup(f"{found.fqdn}@1", NEIGHBOUR)
    assert (good.version, good.health) == (1, "healthy")


async def test_what_fails_sinks_in_discovery_and_says_so(
    stores: Stores, embedder: Embedder
) -> None:
    driver = StoreDriver(stores, embedder)
    for code_hash, name in ((HASH, "fs:aone"), (OTHER_HASH, "fs:bone")):
        await driver.named(name, analysed(code_hash, intent="show one file", tools=[]))
    await driver.reserve(
        "fs:aone",
        (next_one := analysed(SIMILAR_HASH, intent="show one file", tools=[])),
        update=True,
    )
    assert await driver.settle(next_one) == "fs:aone"
    await driver.learned(
        learning_update(20, value=GOOD),
        learning_update(20, code_hash=OTHER_HASH, value=(0.4, 0.6, 0.95)),
        learning_update(20, code_hash=SIMILAR_HASH, value=GOOD),
    )

    async def hits() -> list[tuple[str, Health, str | None]]:
        query = Discover(scope=SCOPE, intent="show one file")
        page = await on_discover(query, embedder, stores.index, stores.candidates)
        return [
            (hit.name, hit.health, hit.last_good)
            for hit in page.hits
            if isinstance(hit, CapabilityHit)
        ]

    bone = ("fs:bone", "unproven", None)
    assert await hits() == [("fs:aone", "healthy", None), bone]
    await driver.learned(learning_update(50, code_hash=SIMILAR_HASH, successes=20, value=BAD))
    assert await hits() == [bone, ("fs:aone", "failing", "fs:aone@1")]
    await driver.learned(learning_update(90, code_hash=SIMILAR_HASH, successes=60, value=GOOD))
    assert await hits() == [("fs:aone", "healthy", None), bone]
