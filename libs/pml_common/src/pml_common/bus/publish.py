"""Storing messages: awaited, deduplicated, optionally fenced."""

import json
import re
from typing import NotRequired, TypedDict

from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.errors import APIError, BadRequestError
from typing_extensions import override

from pml_common.bus import codec, tracing
from pml_common.bus.codec import Payloads
from pml_common.bus.connection import REPLY_TIMEOUT_S, server_errors
from pml_common.bus.errors import BusError, Fenced, StaleServer
from pml_common.bus.identity import Identity
from pml_common.bus.port import Publisher
from pml_common.contracts import catalog
from pml_common.contracts.base import Message

_WRONG_LAST_SEQUENCE = 10071
_LAST_SEQUENCE = re.compile(r"wrong last sequence: (\d+)")


class NatsPublisher(Publisher):
    """Publishes messages on the subjects of the catalog."""

    def __init__(
        self, client: Client, js: JetStreamContext, payloads: Payloads, identity: Identity
    ) -> None:
        self._client = client
        self._js = js
        self._payloads = payloads
        self._identity = identity

    @override
    async def publish(self, message: Message) -> int:
        with tracing.publishing(message) as headers:
            sealed = await codec.seal(message, headers, self._payloads, self._identity)
            if not catalog.type_of(message).is_stored:
                return await self._signal(sealed.subject, sealed.data, headers)
            return await self.store(sealed.subject, sealed.data, headers)

    async def _signal(self, subject: str, data: bytes, headers: dict[str, str]) -> int:
        """Send what nobody stores; 0."""
        with server_errors(self._client, f"publish {subject}"):
            await self._client.publish(subject, data, headers=headers)
        return 0

    async def store(self, subject: str, data: bytes, headers: dict[str, str]) -> int:
        """Store one body and return its sequence."""
        expected = headers.get(codec.EXPECTED_LAST)
        expected_last = None if expected is None else int(expected)
        with server_errors(self._client, f"publish {subject}"):
            try:
                ack = await self._stored(subject, data, headers)
            except BadRequestError as error:
                if expected_last is not None and error.err_code == _WRONG_LAST_SEQUENCE:
                    raise _refused(subject, expected_last, error.description) from error
                raise
            if ack.get("duplicate") and expected_last is not None:
                # A message with this id was stored before, perhaps by another process or a forger:
                # only the journal tells. A single server checks the expectation first, a cluster
                # looks for duplicates first.
                raise Fenced(subject, expected_last)
        return ack["seq"]

    async def _stored(self, subject: str, data: bytes, headers: dict[str, str]) -> "_Ack":
        reply = await self._client.request(subject, data, timeout=REPLY_TIMEOUT_S, headers=headers)
        answer = json.loads(reply.data)
        if "error" in answer:
            raise APIError.from_error(answer["error"])
        return answer


def _refused(subject: str, expected_last: int, said: str | None) -> BusError:
    """Return Fenced; StaleServer if the server's last sequence is lower than the one we know: it
    was partitioned from its cluster, has not learned of another leader yet, and another server may
    have answered too."""
    known = _LAST_SEQUENCE.search(said or "")
    if known is not None and int(known[1]) < expected_last:
        return StaleServer(
            f"publish {subject}: a server with last sequence {known[1]} answered, {expected_last} "
            "is stored"
        )
    return Fenced(subject, expected_last)


class _Ack(TypedDict):
    """The server's acknowledgement of a stored message."""

    stream: str
    seq: int
    duplicate: NotRequired[bool]
