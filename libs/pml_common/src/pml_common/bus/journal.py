"""Reading stored messages: batches of direct gets, without a consumer on the server."""

import asyncio
import heapq
import json
from collections.abc import Sequence
from datetime import datetime

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.errors import NotFoundError
from typing_extensions import override

from pml_common.bus import names
from pml_common.bus.codec import Envelope
from pml_common.bus.connection import REPLY_TIMEOUT_S, server_errors, subscribe
from pml_common.bus.delivery import Receiver
from pml_common.bus.errors import BusUnavailable, TooLarge, Unreadable, of_unknown_type
from pml_common.bus.port import EventsOf, Journal, StoredMessage, without_foreign
from pml_common.contracts import catalog
from pml_common.contracts.catalog import MessageType, Service
from pml_common.contracts.scope import Scope

_BATCH = 500
_BATCH_BYTES = 8 * 1024 * 1024
_OWNERS: Sequence[Service] = sorted(
    {entry.owner for entry in catalog.MESSAGES if entry.kind == "evt"}
)


async def read_stored(
    client: Client, stream: str, subject: str, *, most_bytes: int | None = None
) -> list[Msg]:
    """Return all stored messages on a subject (wildcards allowed), oldest first. Raises TooLarge
    once they take more than `most_bytes`, of which it reads few more."""
    found: list[Msg] = []
    start = 1
    with server_errors(client, f"read {subject} from {stream}"):
        while True:
            async with asyncio.timeout(REPLY_TIMEOUT_S):
                end = await _read_batch(client, stream, subject, start, found)
            if most_bytes is not None and sum(map(_size, found)) > most_bytes:
                raise TooLarge(f"more than {most_bytes:,} bytes are stored on {subject}")
            headers = end.headers or {}
            if headers.get("Status") == "404" or headers.get("Nats-Num-Pending", "0") == "0":
                return found
            start = int(headers["Nats-Last-Sequence"]) + 1


async def _read_batch(
    client: Client, stream: str, subject: str, start: int, found: list[Msg]
) -> Msg:
    """Append one batch to `found`; return the status message that ends it."""
    ended: asyncio.Future[Msg] = asyncio.get_running_loop().create_future()

    async def receive(message: Msg) -> None:
        status = (message.headers or {}).get("Status")
        if status is None:
            found.append(message)
        elif not ended.done():
            ended.set_result(message)

    inbox = client.new_inbox()
    subscription = await subscribe(client, inbox, receive)
    try:
        request = {
            "seq": start,
            "next_by_subj": subject,
            "batch": _BATCH,
            "max_bytes": _BATCH_BYTES,
        }
        await client.publish(
            f"$JS.API.DIRECT.GET.{stream}", json.dumps(request).encode(), reply=inbox
        )
        end = await ended
    finally:
        if not client.is_closed:
            await subscription.unsubscribe()
    status = (end.headers or {})["Status"]
    if status not in ("204", "404"):
        raise BusUnavailable(f"read {subject} from {stream}: server status {status}")
    return end


def _size(message: Msg) -> int:
    """Return the bytes of a message, its headers included."""
    headers = message.headers or {}
    return len(message.data) + sum(len(name) + len(value) for name, value in headers.items())


async def _read_from_leader(client: Client, stream: str, subject: str) -> list[Msg]:
    """Return the last message on one subject, if there is one: other servers of a cluster may not
    have it yet."""
    with server_errors(client, f"read {subject} from {stream}"):
        try:
            found = await JetStreamContext(client, timeout=REPLY_TIMEOUT_S).get_msg(
                stream, subject=subject
            )
        except NotFoundError:
            return []
    where = {"Nats-Subject": found.subject or "", "Nats-Sequence": str(found.seq)}
    stored_at = {"Nats-Time-Stamp": found.time.isoformat() if found.time else ""}
    headers: dict[str, str] = {**(found.headers or {}), **where, **stored_at}  # pyright: ignore[reportUnknownMemberType] - a bare Dict
    return [Msg(client, subject=subject, data=found.data or b"", headers=headers)]


class NatsJournal(Journal):
    """Reads the stored messages about one entity."""

    def __init__(self, client: Client, receiver: Receiver) -> None:
        self._client = client
        self._receiver = receiver

    @override
    async def history(
        self, scope: Scope, entity: str, *, of: EventsOf | None = None
    ) -> Sequence[StoredMessage]:
        if of is not None:
            return await self._read(of, scope, entity)
        parts = await asyncio.gather(*(self._read(owner, scope, entity) for owner in _OWNERS))
        return list(heapq.merge(*parts, key=lambda recorded: recorded.stored_at))

    @override
    async def salvage(
        self, of: EventsOf, scope: Scope, entity: str
    ) -> Sequence[StoredMessage | Unreadable]:
        found: list[StoredMessage | Unreadable] = []
        for stored in await self._stored(of, scope, entity):
            try:
                record = await self._record(stored)
            except Unreadable as error:
                found.append(error)
            else:
                headers = stored.headers or {}
                subject, sequence = headers["Nats-Subject"], int(headers["Nats-Sequence"])
                found.append(record or of_unknown_type(subject, sequence))
        return found

    async def fetch(self, stream: str, sequence: int) -> Envelope | None:
        """Return one stored message, or None. Raises BusUnavailable."""
        with server_errors(self._client, f"read {stream}/{sequence}"):
            stored = await self._client.request(
                f"$JS.API.DIRECT.GET.{stream}",
                json.dumps({"seq": sequence}).encode(),
                timeout=REPLY_TIMEOUT_S,
            )
        headers = stored.headers or {}
        if headers.get("Status") == "404":
            return None
        if "Status" in headers:
            raise BusUnavailable(f"read {stream}/{sequence}: server status {headers['Status']}")
        return Envelope(headers["Nats-Subject"], stored.data, headers)

    async def _read(self, of: EventsOf, scope: Scope, entity: str) -> list[StoredMessage]:
        return without_foreign(await self.salvage(of, scope, entity))

    async def _stored(self, of: EventsOf, scope: Scope, entity: str) -> list[Msg]:
        stream, subjects = names.events_stream(of), names.events_filter(of, scope, entity)
        if isinstance(of, MessageType) and of.until_handled:
            return await _read_from_leader(self._client, stream, subjects)
        return await read_stored(self._client, stream, subjects)

    async def _record(self, stored: Msg) -> StoredMessage | None:
        headers = stored.headers or {}
        envelope = Envelope(headers["Nats-Subject"], stored.data, headers)
        stored_at = datetime.fromisoformat(headers["Nats-Time-Stamp"])
        return await self._receiver.record(envelope, int(headers["Nats-Sequence"]), stored_at)
