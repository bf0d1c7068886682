"""The storage watchdog: when it restarts a NATS that stores nothing."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_local import storage_watchdog as storing
from pml_local.events import Event, PartReady, PartStalled
from pml_local.nats import NatsServer
from pml_local.process import Command
from pml_local.storage_watchdog import Refusals, watch_storage
from pml_local.supervised import SupervisedPart

REFUSAL = "NATS stores nothing: pml.evt.gateway.write-check: nats: timeout"


class Stalled(NatsServer):
    """A fake server that refuses to store until it was started `until` times."""

    def __init__(self, folder: Path, until: int) -> None:
        super().__init__(folder, folder / "nats.log", "secret")
        self.starts = 0
        self.looks = 0
        self._until = until

    async def prepare(self) -> Command:
        self.starts += 1
        return Command(self.name, ("/bin/sleep", "600"), self._log, stop_within=1.0)

    async def problem(self, pid: int) -> str | None:
        return None

    async def refusal(self) -> str | None:
        self.looks += 1
        return REFUSAL if self.starts < self._until else None


@asynccontextmanager
async def watched(nats: Stalled, folder: Path, events: list[Event]) -> AsyncGenerator[None]:
    """Supervise and watch the server until the context exits."""
    part = SupervisedPart(nats, events.append)
    await part.start()
    watching = asyncio.create_task(watch_storage(nats, part, folder, every=0.001))
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.wait([watching])
        await part.stop()


async def test_one_that_stores_nothing_with_room_on_its_disk_is_started_again(
    tmp_path: Path,
) -> None:
    events: list[Event] = []
    nats = Stalled(tmp_path, until=2)
    async with watched(nats, tmp_path, events):
        await eventually(lambda: len([e for e in events if isinstance(e, PartReady)]) == 2)
        (stalled,) = [e for e in events if isinstance(e, PartStalled)]
        assert stalled.reason.startswith(REFUSAL)
        assert "bytes left" in stalled.reason
        looks = nats.looks
        await eventually(lambda: nats.looks > looks + 3)
    assert nats.starts == 2


async def test_without_room_it_is_left_alone_and_not_even_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free, asked = storing.MIN_FREE_BYTES - 1, list[Path]()

    def usage(folder: Path) -> SimpleNamespace:
        asked.append(folder)
        return SimpleNamespace(free=free)

    monkeypatch.setattr("pml_local.storage_watchdog.shutil.disk_usage", usage)
    events: list[Event] = []
    nats = Stalled(tmp_path, until=2)
    async with watched(nats, tmp_path, events):
        await eventually(lambda: len(asked) > 5)
        assert (nats.looks, nats.starts) == (0, 1)
        free = storing.MIN_FREE_BYTES
        await eventually(lambda: nats.starts == 2)


def test_one_refusal_may_be_a_slow_disk() -> None:
    once = Refusals().after(REFUSAL)
    assert not once.too_many
    assert once.after(REFUSAL).too_many
    assert not once.after(None).after(REFUSAL).too_many


def test_restarts_that_do_not_help_become_rarer_and_are_forgotten_once_it_stores() -> None:
    refusals = Refusals()
    pauses: list[float] = []
    for _ in range(8):
        refusals = refusals.restarted()
        pauses.append(refusals.pause(10.0))
    assert pauses == [20.0, 40.0, 80.0, 160.0, 320.0, 600.0, 600.0, 600.0]
    assert not refusals.too_many
    assert refusals.after(None).pause(10.0) == 10.0
