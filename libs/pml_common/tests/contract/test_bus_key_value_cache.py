"""Guarantees of the key-value cache."""

import pytest

from libs.pml_common.tests.support.harness import BusHarness
from libs.pml_local.tests.support.harness import eventually
from pml_common.bus.errors import BusUnavailable

LONG_S = 600.0
KEY = "acme.webapp.0f3b-2_x=.ab12"


async def test_a_value_put_by_one_replica_is_read_by_another(harness: BusHarness) -> None:
    one, other = await harness.connect("gateway"), await harness.connect("registry")
    assert await other.get(KEY) is None
    await one.put(KEY, b"first", LONG_S)
    await one.put("acme.webapp.else", b"another", LONG_S)
    assert await other.get(KEY) == b"first"
    await other.put(KEY, b"second \x00", LONG_S)
    assert await one.get(KEY) == b"second \x00"


async def test_a_value_expires_with_its_own_time_to_live(
    harness: BusHarness,
) -> None:
    bus = await harness.connect("gateway")
    await bus.put("short", b"x", 1.0)
    await bus.put("longer", b"old", 1.0)
    await bus.put("longer", b"new", LONG_S)
    assert await bus.get("short") == b"x"

    async def gone() -> bool:
        return await bus.get("short") is None

    await eventually(gone)
    assert await bus.get("longer") == b"new"


async def test_a_deleted_value_is_gone_and_can_be_put_again(harness: BusHarness) -> None:
    one, other = await harness.connect("gateway"), await harness.connect("gateway")
    await one.delete(KEY)
    assert await one.get(KEY) is None
    await one.put(KEY, b"first", 1.0)
    await other.delete(KEY)
    assert await one.get(KEY) is None
    await one.put(KEY, b"second", LONG_S)
    assert await other.get(KEY) == b"second"


async def test_the_keys_under_a_prefix_are_counted(harness: BusHarness) -> None:
    bus = await harness.connect("gateway")
    assert await bus.count("session.ada") == 0
    for key in ("ada.1", "ada.2", "ada.2.x", "eve.1", "ada"):
        await bus.put(f"session.{key}", b"x", LONG_S)
    await bus.put("session.ada.3", b"x", 1.0)
    assert await bus.count("session.ada") == 3
    await bus.delete("session.ada.1")

    async def expired() -> bool:
        return await bus.count("session.ada") == 1

    await eventually(expired)


async def test_without_a_server_the_cache_is_unavailable(harness: BusHarness) -> None:
    bus = await harness.connect("gateway")
    await bus.put(KEY, b"x", LONG_S)
    await harness.kill(bus)
    with pytest.raises(BusUnavailable):
        await bus.get(KEY)
    with pytest.raises(BusUnavailable):
        await bus.put(KEY, b"y", LONG_S)
    with pytest.raises(BusUnavailable):
        await bus.delete(KEY)
    with pytest.raises(BusUnavailable):
        await bus.count("acme")
    assert await (await harness.connect("gateway")).get(KEY) == b"x"
