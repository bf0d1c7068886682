"""A bus under test, the same on the twin and on a real server: what its contract suite needs."""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, TypeVar
from uuid import UUID

from nats.aio.client import Client
from nats.js import JetStreamContext

from pml_common.bus import codec, names
from pml_common.bus.clock import ScaledClock
from pml_common.bus.codec import Envelope
from pml_common.bus.dead_letters import DeadLetterEntry, read_dead
from pml_common.bus.identity import SIGNATURE, everyone, everyones_keys, statement
from pml_common.bus.memory import MemoryBus
from pml_common.bus.memory_broker import MemoryBroker
from pml_common.bus.nats_bus import NatsBus
from pml_common.bus.port import Bus, Handler
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import Consumer
from pml_common.signing import TrustedKeys

M = TypeVar("M", bound=Message)


class BusWorld(Protocol):
    """One server and the replicas connected to it."""

    scale: float
    """How long a second of waiting takes here."""

    async def connect(self, service: str) -> Bus:
        """One more replica of a service."""
        ...

    async def kill(self, bus: Bus) -> None:
        """Let a replica vanish as a killed process does, without a word to the server."""
        ...

    async def inject(self, envelope: Envelope) -> None:
        """Store bytes that no sender of ours would send, signed unless it has a signature."""
        ...

    async def forget_payloads(self) -> None:
        """Lose every body that a message only refers to."""
        ...

    async def dead_letters(self) -> Sequence[DeadLetterEntry]:
        """What was buried."""
        ...

    async def close(self) -> None:
        """Drain what is left."""
        ...


class MemoryWorld:
    """The twin; its seconds are twenty times shorter."""

    def __init__(self) -> None:
        self.scale = 0.05
        self.broker = MemoryBroker(ScaledClock(self.scale))
        self._buses: list[MemoryBus] = []

    async def connect(self, service: str) -> Bus:
        """See BusWorld; on the twin a replica has no name."""
        self._buses.append(MemoryBus(self.broker))
        return self._buses[-1]

    async def kill(self, bus: Bus) -> None:
        """See BusWorld."""
        for known in self._buses:
            if known is bus:
                known.kill()

    async def inject(self, envelope: Envelope) -> None:
        """See BusWorld."""
        self.broker.store(_signed(envelope))

    async def forget_payloads(self) -> None:
        """See BusWorld."""
        self.broker.payloads.clear()

    async def dead_letters(self) -> Sequence[DeadLetterEntry]:
        """See BusWorld."""
        return list(self.broker.dead)

    async def close(self) -> None:
        """See BusWorld."""
        for bus in self._buses:
            await bus.drain(0.1)


class _MortalBus(NatsBus):
    async def die(self) -> None:
        """Close the socket; handlers go on as those of a process that was cut off would."""
        await self._client.close()


class NatsWorld:
    """A real server at `url`."""

    def __init__(self, url: str) -> None:
        self.scale = 1.0
        self._url = url
        self._buses: list[_MortalBus] = []

    async def connect(self, service: str) -> Bus:
        """See BusWorld."""
        self._buses.append(
            await _MortalBus.connect(self._url, service=service, identity=everyone())
        )
        return self._buses[-1]

    async def kill(self, bus: Bus) -> None:
        """See BusWorld."""
        for known in self._buses:
            if known is bus:
                await known.die()

    async def inject(self, envelope: Envelope) -> None:
        """See BusWorld."""
        client = await self._client()
        await JetStreamContext(client).publish(
            envelope.subject, envelope.data, headers=dict(_signed(envelope).headers)
        )
        await client.close()

    async def forget_payloads(self) -> None:
        """See BusWorld."""
        client = await self._client()
        await JetStreamContext(client).purge_stream(names.PAYLOAD_STREAM)
        await client.close()

    async def dead_letters(self) -> Sequence[DeadLetterEntry]:
        """See BusWorld."""
        client = await self._client()
        try:
            return await read_dead(client)
        finally:
            await client.close()

    async def close(self) -> None:
        """See BusWorld."""
        await asyncio.gather(*(bus.drain(0.1) for bus in self._buses))

    async def _client(self) -> Client:
        client = Client()
        await client.connect(self._url)
        return client


def _signed(envelope: Envelope) -> Envelope:
    entry = codec.type_on(envelope.subject)
    if entry is None or SIGNATURE in envelope.headers:
        return envelope
    digest = hashlib.sha256(envelope.data).hexdigest()
    content = statement(envelope.subject, envelope.headers[codec.MSG_ID], digest)
    signature = everyone().sign(entry.sender, content)
    return replace(envelope, headers={**envelope.headers, SIGNATURE: signature})


def key_files(folder: Path, service: str) -> dict[str, str]:
    """What a service's own process is told so that it and this one believe each other; the files
    are written to `folder`."""
    private, trusted = folder / f"{service}.pem", folder / "trusted.json"
    next(key for key in everyones_keys() if key.service == service).save(private)
    trusted.write_text(TrustedKeys(key.public for key in everyones_keys()).to_json())
    return {"PML_SIGNING_KEY": str(private), "PML_TRUSTED_KEYS": str(trusted)}


class Recorder:
    """A handler that keeps what it is given; each of `outcomes` is raised or returned in turn,
    then it returns no facts."""

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

    async def has_seen(self, count: int, within: float = 15.0) -> None:
        """Wait until `count` deliveries have come."""
        async with asyncio.timeout(within), self._changed:
            await self._changed.wait_for(lambda: len(self.seen) >= count)


class Hanging:
    """A handler that never ends by itself."""

    def __init__(self) -> None:
        self._taken = asyncio.Event()

    async def __call__(self, message: Message) -> Sequence[Message]:
        """Handle one message, for ever."""
        self._taken.set()
        await asyncio.Event().wait()
        return []

    async def has_begun(self) -> None:
        """Wait until a message is in hand."""
        async with asyncio.timeout(5):
            await self._taken.wait()


class ForgetfulBus(NatsBus):
    """Loses what each handler states for the first time, as a crash after the commit would."""

    async def consume(self, consumer: Consumer[M], handler: Handler[M]) -> None:
        crashed = False

        async def crash_first(message: M) -> Sequence[Message]:
            nonlocal crashed
            facts = await handler(message)
            if crashed:
                return facts
            crashed = True
            raise ConnectionResetError("died before telling")

        await super().consume(consumer, crash_first)
