"""Handlers and buses that record, hang or crash."""

import asyncio
from collections.abc import Sequence
from typing import TypeVar
from uuid import UUID

from typing_extensions import override

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.bus.nats_bus import NatsBus
from pml_common.bus.port import BatchHandler, Handled, Handler
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import Consumer

M = TypeVar("M", bound=Message)


class RecordingHandler:
    """A handler that records its messages; it raises or returns each of `outcomes` in turn, then
    returns nothing to publish."""

    def __init__(self, *outcomes: Exception | Sequence[Message]) -> None:
        self.seen: list[UUID] = []
        self.times: list[float] = []
        self._outcomes = list(outcomes)
        self._changed = asyncio.Condition()

    async def __call__(self, message: Message) -> Sequence[Message]:
        """Handle one message."""
        async with self._changed:
            self.seen.append(message.message_id)
            self.times.append(asyncio.get_running_loop().time())
            self._changed.notify_all()
        outcome = self._outcomes.pop(0) if self._outcomes else ()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def has_seen(self, count: int, within: float = PATIENCE_S) -> None:
        """Wait until `count` messages were delivered."""
        async with asyncio.timeout(within), self._changed:
            await self._changed.wait_for(lambda: len(self.seen) >= count)


class RecordingBatchHandler:
    """A batch handler that records its batches; it raises or returns each of `outcomes` in turn,
    then returns that everything was handled."""

    def __init__(self, *outcomes: Exception | Handled) -> None:
        self.batches: list[list[UUID]] = []
        self._outcomes = list(outcomes)
        self._changed = asyncio.Condition()

    @property
    def seen(self) -> list[UUID]:
        """All messages, in the order of their batches."""
        return [message for batch in self.batches for message in batch]

    async def __call__(self, messages: Sequence[Message]) -> Handled:
        """Handle one batch."""
        async with self._changed:
            self.batches.append([message.message_id for message in messages])
            self._changed.notify_all()
        outcome = self._outcomes.pop(0) if self._outcomes else Handled()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def has_seen(self, count: int, within: float = PATIENCE_S) -> None:
        """Wait until `count` messages were delivered."""
        async with asyncio.timeout(within), self._changed:
            await self._changed.wait_for(lambda: len(self.seen) >= count)


class HangingHandler:
    """A handler that never returns."""

    def __init__(self) -> None:
        self._begun = asyncio.Event()

    async def __call__(self, message: Message) -> Sequence[Message]:
        """Handle one message, forever."""
        self._begun.set()
        await asyncio.Event().wait()
        return []

    async def has_begun(self) -> None:
        """Wait until a message is being handled."""
        async with asyncio.timeout(PATIENCE_S):
            await self._begun.wait()


class CrashAfterCommitBus(NatsBus):
    """Loses the first messages that each handler returns, like a crash after its commit."""

    @override
    async def consume(self, consumer: Consumer[M], handler: Handler[M]) -> None:
        crashed = False

        async def crash_first(message: M) -> Sequence[Message]:
            nonlocal crashed
            messages = await handler(message)
            if crashed:
                return messages
            crashed = True
            raise ConnectionResetError("died before publishing")

        await super().consume(consumer, crash_first)

    @override
    async def consume_batches(self, consumer: Consumer[M], handler: BatchHandler[M]) -> None:
        crashed = False

        async def crash_first(messages: Sequence[M]) -> Handled:
            nonlocal crashed
            handled = await handler(messages)
            if crashed:
                return handled
            crashed = True
            raise ConnectionResetError("died before publishing")

        await super().consume_batches(consumer, crash_first)
