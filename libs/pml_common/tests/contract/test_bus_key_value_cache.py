"""What remembering for a time promises."""

import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_common.bus.errors import BusUnavailable
from pml_common.bus.testing import BusWorld

LONG_S = 600.0
KEY = "acme.webapp.0f3b-2_x=.ab12"


async def test_what_one_replica_remembers_another_recalls(world: BusWorld) -> None:
    one, other = await world.connect("gateway"), await world.connect("registry")
    assert await other.get(KEY) is None
    await one.put(KEY, b"first", LONG_S)
    await one.put("acme.webapp.else", b"another", LONG_S)
    assert await other.get(KEY) == b"first"
    await other.put(KEY, b"second \x00", LONG_S)
    assert await one.get(KEY) == b"second \x00"


async def test_a_value_goes_when_its_time_is_over_and_not_with_that_of_its_predecessor(
    world: BusWorld,
) -> None:
    bus = await world.connect("gateway")
    await bus.put("short", b"x", 1.0)
    await bus.put("longer", b"old", 1.0)
    await bus.put("longer", b"new", LONG_S)
    assert await bus.get("short") == b"x"

    async def gone() -> bool:
        return await bus.get("short") is None

    await eventually(gone, within=10)
    assert await bus.get("longer") == b"new"


async def test_without_a_server_nothing_is_remembered_and_that_is_said(world: BusWorld) -> None:
    bus = await world.connect("gateway")
    await bus.put(KEY, b"x", LONG_S)
    await world.kill(bus)
    with pytest.raises(BusUnavailable):
        await bus.get(KEY)
    with pytest.raises(BusUnavailable):
        await bus.put(KEY, b"y", LONG_S)
    assert await (await world.connect("gateway")).get(KEY) == b"x"
