"""Load of services on the bus, while a test disturbs its servers."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar
from uuid import UUID, uuid4

from libs.pml_common.tests.support.builders import after
from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus.errors import BusUnavailable, Fenced
from pml_common.bus.nats_bus import NatsBus
from pml_common.contracts import catalog, ids
from pml_common.contracts.executor import RunWorkflow, TraceRecorded
from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.registry import CatalogChanged
from pml_common.contracts.scope import Scope
from pml_common.contracts.trace import LogWritten
from pml_executor.adapters.bus_journal import BusJournal
from pml_executor.domain import events

T = TypeVar("T")

SERVER = "fs"
CONSUMER = replace(catalog.REGISTRY_ON_TOOLS_LISTED, ack_wait_s=2.0, retry_delays_s=(0.2,))
"""Redelivered soon: a test waits for everything that a change of leaders left unfinished."""
PACE_S = 0.02
"""Pause between two messages of one sender: a load, not a flood."""


@dataclass(frozen=True)
class Append:
    """An acknowledged append: the sequence that it named, and its own."""

    expected: int
    sequence: int


@dataclass
class Load:
    """A sender that retries until acknowledged, a consumer that publishes a message per message,
    two writers that compete for one journal, and an executor's own journal."""

    scope: Scope
    sender: NatsBus
    consumer: NatsBus
    writers: tuple[NatsBus, NatsBus]
    command: RunWorkflow
    acknowledged: list[UUID] = field(default_factory=list[UUID])
    handled: list[UUID] = field(default_factory=list[UUID])
    appends: dict[UUID, Append] = field(default_factory=dict[UUID, Append])
    fenced: int = 0
    journaled: int = 0
    contested: UUID = field(default_factory=uuid4)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list[asyncio.Task[None]])
    _stopping: bool = False

    async def start(self) -> None:
        """Start, and wait until everything has worked once."""
        await self.consumer.consume(CONSUMER, self._handle)
        self._tasks = [
            asyncio.create_task(each)
            for each in (self._send(), self._journal(), *map(self._compete, self.writers))
        ]
        await self.goes_on()

    async def goes_on(self, within: float = PATIENCE_S) -> None:
        """Wait until new messages are sent and handled, and new appends stored."""
        before = self._progress()

        def further() -> bool:
            for task in self._tasks:
                if task.done():
                    task.result()
            return all(now > then + 3 for now, then in zip(self._progress(), before, strict=True))

        await eventually(further, within=within)

    async def stop(self) -> None:
        """Finish current work, and wait until all sent messages are handled."""
        self._stopping = True
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(*self._tasks)
        await eventually(lambda: set(self.acknowledged) <= set(self.handled))

    def _progress(self) -> tuple[int, ...]:
        return len(self.acknowledged), len(self.handled), len(self.appends), self.journaled

    async def _send(self) -> None:
        while not self._stopping:
            message = ToolsListed(event_id=uuid4(), scope=self.scope, server=SERVER, tools=())
            await until_acknowledged(lambda sent=message: self.sender.publish(sent))
            self.acknowledged.append(message.event_id)
            await asyncio.sleep(PACE_S)  # waits: pace of the load

    async def _handle(self, message: ToolsListed) -> Sequence[CatalogChanged]:
        self.handled.append(message.event_id)
        return [CatalogChanged(event_id=effect_of(message.event_id), scope=self.scope, server="fs")]

    async def _journal(self) -> None:
        journal = BusJournal(self.writers[0], self.command)
        await journal.open(events.run_started(self.command, 0.0))
        while not self._stopping:
            journal.note(entry(self.command.workflow_id, str(self.journaled)))
            await journal.append()
            self.journaled += 1
            await asyncio.sleep(PACE_S)  # waits: pace of the load

    async def _compete(self, bus: NatsBus) -> None:
        expected = 0
        while not self._stopping:
            one = TraceRecorded(
                event_id=uuid4(),
                scope=self.scope,
                workflow_id=self.contested,
                entries=(entry(self.contested, "mine"),),
            )
            try:
                stored = await until_acknowledged(
                    lambda one=one, at=expected: bus.publish(after(at, one))
                )
                self.appends[one.event_id] = Append(expected, stored)
                expected = stored
            except Fenced:
                self.fenced += 1
                past = await until_acknowledged(
                    lambda: bus.history(self.scope, str(self.contested), of=catalog.TRACE_RECORDED)
                )
                expected = past[-1].sequence if past else 0
            await asyncio.sleep(PACE_S)  # waits: pace of the load


async def check(load: Load, reader: NatsBus) -> bool:
    """Assert the invariants, as soon as the server that `reader` reads from has caught up with the
    others; `reader` may read everything."""
    sent = await reader.history(load.scope, SERVER, of=catalog.TOOLS_LISTED)
    stored = [each.message.message_id for each in sent]
    assert len(set(stored)) == len(stored), "a message was stored twice"
    assert set(load.acknowledged) <= set(stored), "an acknowledged message is lost"
    order = [each for each in stored if each in set(load.acknowledged)]
    assert order == load.acknowledged, "messages changed their order"

    facts = await reader.history(load.scope, SERVER, of=catalog.CATALOG_CHANGED)
    effects = [each.message.message_id for each in facts]
    assert len(set(effects)) == len(effects), "an effect was stored twice"
    assert {effect_of(each) for each in load.acknowledged} <= set(effects), "an effect is missing"

    contested = await reader.history(load.scope, str(load.contested), of=catalog.TRACE_RECORDED)
    sequences = [each.sequence for each in contested]
    follows = {
        each.message.message_id: Append(before, each.sequence)
        for before, each in zip([0, *sequences], contested, strict=False)
    }
    assert load.appends.items() <= follows.items(), "an append followed another than it named"

    run = await reader.history(load.scope, str(load.command.workflow_id), of=catalog.TRACE_RECORDED)
    appends = [each.message for each in run if isinstance(each.message, TraceRecorded)]
    entries = [each for append in appends for each in append.entries]
    lines = [each.message for each in entries if isinstance(each, LogWritten)]
    assert lines == [str(number) for number in range(load.journaled)], "a journal has gaps"
    return True


def entry(workflow_id: UUID, message: str) -> LogWritten:
    """One entry of a journal."""
    return LogWritten(
        trace_id=ids.root_trace_id(workflow_id), ts=0.0, level="info", message=message
    )


def effect_of(cause: UUID) -> UUID:
    """The id of the message that follows from a message."""
    return ids.effect_id(cause, "catalog-changed")


async def until_acknowledged(attempt: Callable[[], Awaitable[T]]) -> T:
    """Retry while it is unknown whether it was stored, as senders do."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                return await attempt()
            except BusUnavailable:
                await asyncio.sleep(0.1)  # waits: pace of the load
