"""Events of a session's stream, by what has changed and when."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.testing.memory_bus import MemoryBus
from pml_gateway.adapters.bus.client_sessions import BusClientSessions
from pml_gateway.application.client_sessions import SessionLimits, Sessions
from pml_gateway.domain.api.client_session import ClientSession, event_id
from pml_gateway.domain.api.errors import Busy
from pml_gateway.entrypoints.mcp.session_streams import SessionStreams, StreamLimits
from pml_gateway.ports import Caller
from services.gateway.tests.support.builders import SCOPE

ADA = Caller(SCOPE, "ada")
START = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    """A clock that is moved by hand; begins an hour after the gateway."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def forward(self, seconds: float) -> datetime:
        self.now += timedelta(seconds=seconds)
        return self.now


class World:
    """The streams of one process and the sessions of all."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.bus = MemoryBus()
        self.limits = SessionLimits(ttl_s=600.0, sessions=2)
        self.sessions = Sessions(BusClientSessions(self.bus), self.clock, self.limits)
        self.streams = SessionStreams(self.sessions, self.clock, StreamLimits(beat_s=0.001))
        self.clock.forward(3600)

    async def begin(self, caller: Caller = ADA) -> ClientSession:
        """Begin a session."""
        session_id = await self.sessions.begin(caller, "2025-11-25", {}, {})
        found = await self.sessions.find(caller, session_id)
        assert found is not None
        return found

    def told(self, session: ClientSession, last_event_id: str | None = None) -> AsyncIterator[str]:
        """Open a stream and yield what it tells, after its opening event."""
        response = self.streams.open(session, last_event_id)
        return cast(AsyncIterator[str], response.body_iterator)


@pytest.fixture
def world() -> World:
    return World()


async def _first(told: AsyncIterator[object]) -> str:
    """Return what a stream tells first; a comment if that is nothing."""
    opening = await anext(told)
    assert isinstance(opening, bytes)
    assert opening.startswith(b"id: ")
    said = await anext(told)
    assert isinstance(said, bytes)
    return said.decode()


async def test_a_new_session_is_told_of_nothing_that_was_before(world: World) -> None:
    world.streams.changed("notifications/tools/list_changed")
    world.clock.forward(60)
    assert (await _first(world.told(await world.begin()))).startswith(":")


async def test_a_change_between_the_handshake_and_the_stream_is_told(world: World) -> None:
    session, at = await world.begin(), world.clock.forward(60)
    world.streams.changed("notifications/tools/list_changed")
    world.clock.forward(60)
    said = await _first(world.told(session))
    assert said.startswith(f"id: {event_id(at)}\n")
    assert '"notifications/tools/list_changed"' in said


async def test_who_was_told_is_not_told_again(world: World) -> None:
    session, at = await world.begin(), world.clock.forward(60)
    world.streams.changed("notifications/tools/list_changed")
    seen = event_id(world.clock.forward(60))
    assert (await _first(world.told(session, seen))).startswith(":")
    assert "tools" in await _first(world.told(session, event_id(at - timedelta(seconds=1))))


async def test_a_session_that_is_older_than_this_process_is_told(world: World) -> None:
    before = event_id(START - timedelta(seconds=60))
    told = await _first(world.told(await world.begin(), before))
    for changed in ("tools", "resources", "prompts"):
        assert f'"notifications/{changed}/list_changed"' in told


@pytest.mark.parametrize("garbage", ["", "x", "-5", "9" * 19, "9" * 4000, "²"])
async def test_an_id_that_is_none_of_ours_counts_from_the_beginning_of_the_session(
    world: World, garbage: str
) -> None:
    session = await world.begin()
    world.clock.forward(60)
    world.streams.changed("notifications/tools/list_changed")
    world.clock.forward(60)
    assert "tools" in await _first(world.told(session, garbage))


async def test_an_id_of_the_future_is_now(world: World) -> None:
    session = await world.begin()
    told = world.told(session, event_id(world.clock.now + timedelta(days=1)))
    opening = cast(bytes, await anext(told))
    assert opening.startswith(f"id: {event_id(world.clock.now)}\n".encode())


async def test_changes_that_come_together_are_one_event_each_list(world: World) -> None:
    told = world.told(await world.begin())
    assert (await _first(told)).startswith(":")
    for method in ("notifications/a", "notifications/b", "notifications/a"):
        at = world.clock.forward(1)
        world.streams.changed(method)
    said = cast(bytes, await anext(told)).decode()
    assert said.count("data: ") == 2
    assert said.count(f"id: {event_id(at)}\n") == 2


async def test_a_stream_whose_session_is_gone_ends(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pml_gateway.entrypoints.mcp.session_streams._RENEW_AFTER_S", 0.0)
    session = await world.begin()
    world.clock.forward(300)
    told = world.told(session)
    await _first(told)
    await anext(told)  # renewed
    world.bus.broker.available = False
    await anext(told)  # whether it lives cannot be known
    world.bus.broker.available = True
    assert await world.sessions.renew(session)
    await world.sessions.end(session)
    async with asyncio.timeout(PATIENCE_S):
        rest = [cast(bytes, said) async for said in told]
    assert all(said.startswith(b":") for said in rest)


async def test_a_used_session_stays_and_an_unused_one_is_forgotten(world: World) -> None:
    used = await world.sessions.begin(ADA, "2025-11-25", {}, {})
    world.clock.forward(100)
    found = await world.sessions.find(ADA, used)
    assert found is not None
    assert found.used_at == world.clock.now
    world.clock.forward(1)
    found = await world.sessions.find(ADA, used)
    assert found is not None
    assert found.used_at < world.clock.now  # not stored again at every request
    assert await world.sessions.find(Caller(SCOPE, "eve"), used) is None


async def test_a_credential_has_a_bounded_number_of_sessions(world: World) -> None:
    sessions = [await world.begin() for _ in range(2)]
    with pytest.raises(Busy, match="has 2 MCP sessions"):
        await world.begin()
    await world.begin(Caller(SCOPE, "eve"))
    await world.sessions.end(sessions[0])
    await world.begin()
