"""Journals that cannot be read, or lost stored entries: nothing is called again."""

import asyncio
from collections.abc import Sequence
from uuid import uuid4

import pytest
from pydantic import JsonValue

from libs.pml_common.tests.support.builders import appended_bytes
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus import codec, names
from pml_common.bus.codec import Envelope
from pml_common.bus.delivery import DeadLetter, Retry, dispose
from pml_common.bus.errors import Fenced, MessageLost, Unreadable
from pml_common.bus.port import EventsOf, StoredMessage
from pml_common.bus.run_journal import subjects_of
from pml_common.contracts.catalog import EXECUTOR_ON_RUN_WORKFLOW, RUN_FINISHED, TRACE_RECORDED
from pml_common.contracts.executor import CancelRun, RunWorkflow, TraceRecorded
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.adapters import bus_journal
from pml_executor.entrypoints.bus.on_cancel_run import on_cancel_run
from services.executor.tests.support.builders import make_command
from services.executor.tests.support.fakes import HeldTools
from services.executor.tests.support.harness import deliver, finish, make_dependencies
from services.executor.tests.support.memory_sandbox import MemoryPool, ProgramApi
from services.executor.tests.support.memory_tools import MemoryTools


async def two_calls(api: ProgramApi, args: JsonObject) -> JsonValue:
    await api.call("n1", "fs:read")
    return await api.call("n2", "fs:write")


async def three_calls(api: ProgramApi, args: JsonObject) -> JsonValue:
    await api.call("n0", "fs:stat")
    return await two_calls(api, args)


POOL = MemoryPool({"two": two_calls, "three": three_calls})
POISON: dict[str, tuple[bytes, str | None]] = {
    "no JSON": (b"not json", None),
    "no append": (b"{}", None),
    "a body that is gone": (b"", "0" * 64),
}


class LaggingBus(MemoryBus):
    """A bus whose first `unseen` histories lack the last two messages."""

    unseen = 0

    async def salvage(
        self, of: EventsOf, scope: Scope, entity: str
    ) -> Sequence[StoredMessage | Unreadable]:
        found = await super().salvage(of, scope, entity)
        self.unseen, is_late = max(0, self.unseen - 1), self.unseen > 0
        return found[:-2] if is_late else found


def poison(bus: MemoryBus, command: RunWorkflow, kind: str) -> None:
    """Append bytes to the run's journal, as an executor can."""
    data, payload = POISON[kind]
    last = bus.broker.stream("evt", "executor").last_on(
        subjects_of(command.scope, command.workflow_id)
    )
    bus.broker.store(appended_bytes(append_of(command, last), data, payload))


def append_of(command: RunWorkflow, previous: int) -> TraceRecorded:
    """Build an append without entries."""
    return TraceRecorded(
        event_id=uuid4(),
        scope=command.scope,
        workflow_id=command.workflow_id,
        entries=(),
        previous=previous,
    )


def cancel(run: RunWorkflow) -> CancelRun:
    return CancelRun(
        scope=run.scope,
        command_id=uuid4(),
        workflow_id=run.workflow_id,
        run=run,
        why="mira cancelled it",
    )


async def interrupted(bus: MemoryBus, command: RunWorkflow) -> None:
    """Run until the second call is under way, and stop the executor there."""
    tools = HeldTools()
    dying = asyncio.ensure_future(deliver(command, make_dependencies(bus, POOL, tools)))
    async with asyncio.timeout(PATIENCE_S):
        await tools.begun.wait()
    dying.cancel()
    await asyncio.gather(dying, return_exceptions=True)


@pytest.mark.parametrize("kind", POISON)
async def test_a_run_whose_journal_cannot_be_read_calls_nothing_and_is_given_up(kind: str) -> None:
    bus, tools, command = MemoryBus(), MemoryTools(), make_command("two")
    poison(bus, command, kind)
    deps = make_dependencies(bus, POOL, tools)
    with pytest.raises(Unreadable, match="message 1 cannot be read") as unreadable:
        await deliver(command, deps)
    with pytest.raises(Unreadable):
        await on_cancel_run(cancel(command), deps)
    assert tools.made == {}
    tries = [dispose(unreadable.value, EXECUTOR_ON_RUN_WORKFLOW, n) for n in (1, 2, 3)]
    assert [type(one) for one in tries] == [Retry, Retry, DeadLetter]


@pytest.mark.parametrize("kind", POISON)
async def test_a_run_under_way_stops_at_the_first_append_after_what_cannot_be_read(
    kind: str,
) -> None:
    bus, tools, command = MemoryBus(), HeldTools(), make_command("two")
    running = asyncio.ensure_future(deliver(command, make_dependencies(bus, POOL, tools)))
    async with asyncio.timeout(PATIENCE_S):
        await tools.begun.wait()
        poison(bus, command, kind)
        tools.release.set()
        with pytest.raises(Unreadable):
            await running
    assert tools.made == {"fs:read": 1, "fs:write": 1}


async def test_each_append_names_the_one_before_it() -> None:
    bus, command = MemoryBus(), make_command("two")
    await interrupted(bus, command)
    await finish(command, make_dependencies(bus, POOL, MemoryTools()))
    stored = await bus.history(command.scope, str(command.workflow_id), of=TRACE_RECORDED)
    appends = [(each.sequence, getattr(each.message, "previous", None)) for each in stored]
    assert [previous for _, previous in appends] == [0, *(sequence for sequence, _ in appends[:-1])]


@pytest.mark.parametrize("lost", [0, 1])
async def test_a_run_whose_journal_lost_an_append_in_its_midst_calls_nothing_again(
    lost: int,
) -> None:
    bus, command = MemoryBus(), make_command("three")
    await interrupted(bus, command)
    del bus.broker.stream("evt", "executor").messages[lost]
    tools = MemoryTools()
    deps = make_dependencies(bus, POOL, tools)
    with pytest.raises(Unreadable, match=f"message {lost + 2} cannot be read: it was stored after"):
        await deliver(command, deps)
    with pytest.raises(Unreadable):
        await on_cancel_run(cancel(command), deps)
    assert tools.made == {}


async def test_a_run_under_way_whose_last_append_is_lost_is_given_up_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bus_journal, "LAG_DELAYS_S", (0.0, 0.0))
    bus, tools, command = MemoryBus(), HeldTools(), make_command("two")
    running = asyncio.ensure_future(deliver(command, make_dependencies(bus, POOL, tools)))
    async with asyncio.timeout(PATIENCE_S):
        await tools.begun.wait()
        gone = bus.broker.stream("evt", "executor").messages.pop()
        tools.release.set()
        with pytest.raises(
            MessageLost, match=f"message {gone.sequence} cannot be read: it was stored"
        ):
            await running


def test_what_is_lost_is_given_up_at_its_first_delivery() -> None:
    assert isinstance(dispose(MessageLost("a", 7, "gone"), EXECUTOR_ON_RUN_WORKFLOW, 1), DeadLetter)


async def test_a_forged_end_in_the_journal_costs_a_redelivery_and_nothing_else() -> None:
    bus, tools, command = MemoryBus(), HeldTools(), make_command("two")
    deps = make_dependencies(bus, POOL, tools)
    running = asyncio.ensure_future(deliver(command, deps))
    async with asyncio.timeout(PATIENCE_S):
        await tools.begun.wait()
        subject = names.subject_of(RUN_FINISHED, command.scope, str(command.workflow_id))
        bus.broker.store(Envelope(subject, b"{}", {codec.MSG_ID: "forged"}))
        tools.release.set()
        with pytest.raises(Fenced):
            await running
    assert (await finish(command, deps)).success
    assert set(tools.made.values()) == {1}


async def test_an_append_that_a_slow_replica_shows_late_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The run was taken over meanwhile, so it is fenced, and nothing of it is missing."""
    monkeypatch.setattr(bus_journal, "LAG_DELAYS_S", (0.0, 0.0))
    bus, tools, command = LaggingBus(), HeldTools(), make_command("two")
    running = asyncio.ensure_future(deliver(command, make_dependencies(bus, POOL, tools)))
    async with asyncio.timeout(PATIENCE_S):
        await tools.begun.wait()
        stored = bus.broker.stream("evt", "executor").messages
        last = stored[-1].sequence
        await bus.publish(append_of(command, last))
        bus.unseen = 2
        tools.release.set()
        with pytest.raises(Fenced):
            await running
    assert bus.unseen == 0
