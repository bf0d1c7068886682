"""nats-py's client with fewer turns of the event loop between a request and its reply.

nats-py writes in one task, parses in another, and waits for the reply through a third; a turn of
the loop costs as much as the work done in it, and a tool call makes three requests in a row. ADR
0001 has the figures. No upstream option covers this, so private methods are overridden here and in
no other module: nats-py is pinned to 2.16, and test_bus_client.py covers what must stay true.
"""
# The overridden methods are private in nats-py, and not all of them typed:
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from secrets import token_hex
from typing import TypeVar

from nats.aio.client import NO_RESPONDERS_STATUS, Client
from nats.aio.msg import Msg
from nats.aio.transport import TcpTransport
from nats.errors import NoRespondersError
from nats.errors import TimeoutError as NoReplyInTime
from nats.js.api import Header

T = TypeVar("T")

_MOST_UNSENT = 64 * 1024


class DirectClient(Client):
    """Writes immediately, and resolves a request where its reply is parsed."""

    def __init__(self) -> None:
        super().__init__()
        self._replies_to = ""
        self._reply_sid = 0
        self._waiting: dict[bytes, Callable[[Msg], None]] = {}

    async def _send_publish(
        self,
        subject: str,
        reply: str,
        payload: bytes,
        payload_size: int,
        headers: dict[str, str] | None,
    ) -> None:
        """Send like nats-py, without its header normalisation if the headers need none."""
        # Joined, not formatted: nats-py passes header names that are enumeration members.
        lines = "".join(
            part for line in (headers or {}).items() for part in (line[0], ": ", line[1], "\r\n")
        )
        if not headers or lines.count("\n") + lines.count("\r") != 2 * len(headers):
            await super()._send_publish(subject, reply, payload, payload_size, headers)
            return
        head = f"NATS/1.0\r\n{lines}\r\n".encode()
        size = len(head)
        command = f"HPUB {subject} {reply} {size} {size + payload_size}\r\n".encode()
        self.stats["out_msgs"] += 1
        self.stats["out_bytes"] += payload_size
        await self._send_command(b"".join((command, head, payload, b"\r\n")))
        await self._flush_pending()

    async def _flush_pending(self, force_flush: bool = False) -> None:
        """Write pending data; if that might block, leave it to nats-py's flusher task."""
        writer = None if force_flush else self._writer()
        if writer is None:
            with _cancellable():
                await super()._flush_pending(force_flush)
            return
        pending, self._pending, self._pending_data_size = self._pending, [], 0
        writer.writelines(pending)

    def _writer(self) -> asyncio.StreamWriter | None:
        """Return the stream to write to, or None if a write might block."""
        if not self.is_connected or not isinstance(self._transport, TcpTransport):
            return None
        writer = self._transport._io_writer
        if writer is None or writer.transport.is_closing():
            return None
        return writer if writer.transport.get_write_buffer_size() < _MOST_UNSENT else None

    async def _request_new_style(
        self,
        subject: str,
        payload: bytes,
        timeout: float = 1,
        headers: dict[str, str] | None = None,
    ) -> Msg:
        reply_to = await self.new_reply_subject()
        try:
            async with asyncio.timeout(timeout):
                return await self.ask(subject, payload, headers, reply_to, lambda reply: reply)
        except TimeoutError as error:
            raise NoReplyInTime from error

    async def new_reply_subject(self) -> str:
        """Return a new subject for the reply to one request; unguessable, so that a responder
        cannot forge the reply to the next request."""
        if not self._replies_to:
            self._replies_to = self.new_inbox()
            subscription = await self.subscribe(f"{self._replies_to}.*", cb=_ignore)
            self._reply_sid = subscription._id
        return f"{self._replies_to}.{token_hex(12)}"

    async def ask(
        self,
        subject: str,
        payload: bytes,
        headers: dict[str, str] | None,
        reply_to: str,
        accept: Callable[[Msg], T | None],
    ) -> T:
        """Send a request and return what `accept` makes of the first reply that it does not turn
        down with None; replies come on `reply_to`, made by `new_reply_subject`. Raises
        NoRespondersError."""
        key = reply_to[len(self._replies_to) + 1 :].encode()
        accepted: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def receive(reply: Msg) -> None:
            if accepted.done():
                return
            if reply.headers and reply.headers.get(Header.STATUS) == NO_RESPONDERS_STATUS:
                accepted.set_exception(NoRespondersError())
            elif (found := accept(reply)) is not None:
                accepted.set_result(found)

        self._waiting[key] = receive
        try:
            await self.publish(subject, payload, reply=reply_to, headers=headers)
            return await accepted
        finally:
            del self._waiting[key]

    async def _process_msg(
        self, sid: int, subject: bytes, reply: bytes, data: bytes, headers: bytes
    ) -> None:
        if sid != self._reply_sid:
            await super()._process_msg(sid, subject, reply, data, headers)
            return
        receive = self._waiting.get(bytes(subject[len(self._replies_to) + 1 :]))
        if receive is not None:
            named = await self._process_headers(headers)
            receive(self._build_message(sid, subject, reply, data, named))


async def publish_empty(client: Client, subjects: Sequence[str], *, later: bool = False) -> None:
    """Publish an empty message on each subject, in one write: acknowledgements of a batch. With
    `later`, they leave with whatever is sent next."""
    for subject in subjects:
        await client._send_command(f"PUB {subject} 0\r\n\r\n".encode())
    client.stats["out_msgs"] += len(subjects)
    if not later:
        await client._flush_pending()


@contextmanager
def _cancellable() -> Generator[None]:
    """Re-raise a cancellation that nats-py swallowed inside the block: a timeout that fired there
    would count as consumed, and the next wait would never end."""
    task = asyncio.current_task()
    before = task.cancelling() if task else 0
    yield
    if task is not None and task.cancelling() > before:
        raise asyncio.CancelledError


async def _ignore(message: Msg) -> None:
    """Never called: `_process_msg` delivers replies to their requests."""
