"""The server's time, extrapolated over jumps of the local clock and over outages."""

import logging
from datetime import UTC, datetime, timedelta

import pytest

from pml_common.bus.errors import BusUnavailable
from pml_common.bus.server_clock import ServerClock
from pml_common.health import Detail
from pml_common.outages import Outage, downtime_since
from pml_common.service import clock_check

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Times:
    """The clocks of a server and a machine, set by the test; a reading takes `reply_s`."""

    def __init__(self) -> None:
        self.passed, self.turned_by, self.server_turned_by, self.reply_s = 0.0, 0.0, 0.0, 0.0
        self.away = False
        self.clock = ServerClock(self.read, self.monotonic, self.wall)

    def monotonic(self) -> float:
        return 1000.0 + self.passed

    def wall(self) -> float:
        return NOON.timestamp() + self.passed + self.turned_by

    async def read(self) -> datetime:
        self.passed += self.reply_s / 2
        if self.away:
            raise BusUnavailable("not connected to NATS")
        stated = NOON + timedelta(seconds=self.passed + self.server_turned_by)
        self.passed += self.reply_s / 2
        return stated

    async def check(self) -> str | None:
        return await clock_check(self.clock.now, self.wall)()


async def test_a_jump_of_the_local_clock_does_not_move_the_servers_time() -> None:
    times = Times()
    assert await times.clock.synchronize()
    times.passed, times.turned_by = 5.0, 3600.0
    assert times.clock.now() == NOON + timedelta(seconds=5)
    assert await times.clock.synchronize()
    assert times.clock.now() == NOON + timedelta(seconds=5)


async def test_before_the_first_reading_the_local_clock_is_used() -> None:
    times = Times()
    times.away, times.turned_by = True, 60.0
    assert not await times.clock.synchronize()
    assert times.clock.now() == NOON + timedelta(seconds=60)
    assert times.clock.outages() == ()


async def test_a_server_whose_clock_is_set_is_followed() -> None:
    times = Times()
    await times.clock.synchronize()
    times.server_turned_by = -7200.0
    await times.clock.synchronize()
    assert times.clock.now() == NOON - timedelta(hours=2)


async def test_a_reading_is_corrected_by_half_its_duration_and_a_slow_one_is_ignored() -> None:
    times = Times()
    times.reply_s = 3.0
    await times.clock.synchronize()
    assert times.clock.now() == NOON + timedelta(seconds=3)
    times.server_turned_by = 40.0
    await times.clock.synchronize()
    assert times.clock.now() == NOON + timedelta(seconds=6)
    times.reply_s = 0.1
    await times.clock.synchronize()
    assert times.clock.now() == NOON + timedelta(seconds=46.1)


async def test_an_outage_lasts_from_the_last_answer_to_the_next() -> None:
    times = Times()
    await times.clock.synchronize()
    times.passed, times.away = 2.0, True
    assert not await times.clock.synchronize()
    times.passed = 9.0
    assert not await times.clock.synchronize()
    assert times.clock.outages() == (Outage(1000.0, 1009.0),)
    times.passed, times.away = 10.0, False
    assert await times.clock.synchronize()
    times.passed = 100.0
    assert times.clock.outages() == (Outage(1000.0, 1010.0),)
    assert [downtime_since(times.clock.outages(), at) for at in (990, 1004, 1010, 1050)] == [
        10.0,
        6.0,
        0.0,
        0.0,
    ]


@pytest.mark.parametrize(
    ("turned_by", "told"), [(3600.0, "3600.0 s ahead of that"), (-90.0, "90.0 s behind that")]
)
async def test_a_clock_difference_is_a_detail_and_logged_once(
    caplog: pytest.LogCaptureFixture, turned_by: float, told: str
) -> None:
    times = Times()
    caplog.set_level(logging.INFO, "pml_common.bus.server_clock")
    await times.clock.synchronize()
    assert (await times.check(), caplog.messages) == (None, [])
    times.turned_by = turned_by
    await times.clock.synchronize()
    await times.clock.synchronize()
    found = await times.check()
    assert isinstance(found, Detail)
    assert told in found
    assert [(record.levelname, record.message) for record in caplog.records] == [("WARNING", found)]
    times.turned_by = 0.2
    await times.clock.synchronize()
    assert await times.check() is None
    assert "agrees" in caplog.messages[-1]
