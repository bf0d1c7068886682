"""Dead letters: messages that a consumer gave up, stored with the reason, and read back."""

import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic

from nats.aio.client import Client
from nats.aio.msg import Msg

from pml_common.bus import codec, measures, names, tracing
from pml_common.bus.codec import Envelope
from pml_common.bus.delivery import Disposition, Done, Receiver, dispose
from pml_common.bus.errors import Rejected
from pml_common.bus.identity import SIGNATURE, Identity, WrongSender, signed_content
from pml_common.bus.journal import read_stored
from pml_common.bus.port import DeadLetterHandler, DeadMessage
from pml_common.bus.publish import NatsPublisher
from pml_common.contracts import catalog
from pml_common.contracts.base import Message
from pml_common.contracts.catalog import Consumer, DeadLetterConsumer

log = logging.getLogger(__name__)

REASON = "Pml-Dead-Reason"
SUBJECT = "Pml-Dead-Subject"
DELIVERIES = "Pml-Dead-Deliveries"
MESSAGE_ID = "Pml-Dead-Message-Id"
DEAD_LETTER_SIGNATURE = "Pml-Dead-Signature"
"""Header: the signature of the service that dead-lettered the message."""
_RENAMED = {
    codec.MSG_ID: MESSAGE_ID,
    codec.EXPECTED_LAST: "Pml-Dead-Expected-Last",
    codec.EXPECTED_ON: "Pml-Dead-Expected-On",
}
"""Headers that would take effect again when the dead letter is stored."""
_REASON_LIMIT = 4000
_CONSUMERS = {consumer.durable: consumer for consumer in catalog.CONSUMERS}


def _no_headers() -> Mapping[str, str]:
    return {}


@dataclass(frozen=True)
class DeadLetterEntry:
    """A message that `durable` gave up; `data` and `headers` as delivered, the message id under
    another header name.

    The server's own dead letters (a replica died on the last delivery) have no data, and their
    subject is `<stream>/<sequence>`: the message is still in its stream.
    """

    durable: str
    subject: str
    reason: str
    deliveries: int
    data: bytes
    headers: Mapping[str, str] = field(default_factory=_no_headers, compare=False, repr=False)
    by_server: bool = False


def build_dead_letter(
    consumer: Consumer[Message],
    identity: Identity,
    envelope: Envelope,
    reason: str,
    deliveries: int,
) -> Envelope:
    """Build the dead letter of a delivery, signed by the consumer's service; unsigned without its
    key."""
    subject = names.dead_subject(consumer.durable)
    kept = {_RENAMED.get(name, name): value for name, value in envelope.headers.items()}
    headers = kept | {
        REASON: " ".join(reason.split())[:_REASON_LIMIT],
        SUBJECT: envelope.subject,
        DELIVERIES: str(deliveries),
    }
    try:
        content = _signed_letter(subject, headers, envelope.data)
        headers[DEAD_LETTER_SIGNATURE] = identity.sign(consumer.service, content)
    except WrongSender as error:
        log.warning("%s: the dead letter is not signed: %s", subject, error)
    return Envelope(subject, envelope.data, headers)


def parse_dead_letter(envelope: Envelope) -> DeadLetterEntry:
    """Parse a stored dead letter or the server's advisory."""
    if envelope.subject.startswith(names.MAX_DELIVERIES_ADVISORIES):
        advisory = json.loads(envelope.data)
        return DeadLetterEntry(
            durable=advisory["consumer"],
            subject=f"{advisory['stream']}/{advisory['stream_seq']}",
            reason=f"not acknowledged in {advisory['deliveries']} deliveries",
            deliveries=advisory["deliveries"],
            data=b"",
            by_server=True,
        )
    headers = envelope.headers
    return DeadLetterEntry(
        durable=envelope.subject.removeprefix(names.dead_subject("")),
        subject=headers.get(SUBJECT, ""),
        reason=headers.get(REASON, ""),
        deliveries=int(headers.get(DELIVERIES, "0")),
        data=envelope.data,
        headers=headers,
    )


def _signed_letter(subject: str, headers: Mapping[str, str], data: bytes) -> bytes:
    """Return the signed content of a dead letter: everything but the text of the reason."""
    told = (SUBJECT, DELIVERIES, *_RENAMED.values(), SIGNATURE, codec.PAYLOAD)
    body = hashlib.sha256(data).hexdigest()
    listed = json.dumps([*(headers.get(name, "") for name in told), body])
    digest = hashlib.sha256(listed.encode()).hexdigest()
    return signed_content(subject, headers.get(MESSAGE_ID, ""), digest)


async def store_dead_letter(publisher: NatsPublisher, message: Msg, letter: Envelope) -> None:
    """Store a dead letter in `PML_DEAD`; a repeated call for one delivery stores nothing. Raises
    BusUnavailable."""
    delivered = message.metadata
    stored = f"{delivered.stream}/{delivered.sequence.stream}"
    durable = letter.subject.removeprefix(names.dead_subject(""))
    headers = {**letter.headers, codec.MSG_ID: f"{durable}/{stored}"}
    await publisher.store(letter.subject, letter.data, headers)


async def read_dead_letters(client: Client) -> list[DeadLetterEntry]:
    """Return all dead letters, oldest first. Raises BusUnavailable."""
    stored = await read_stored(client, names.DEAD_STREAM, ">")
    return [
        parse_dead_letter(
            Envelope((each.headers or {})["Nats-Subject"], each.data, each.headers or {})
        )
        for each in stored
    ]


Fetch = Callable[[str, int], Awaitable[Envelope | None]]
"""Reads one stored message by stream and sequence; None if it is gone."""


class DeadLetterReader:
    """Handles dead letters whose message its sender published and its consumer gave up."""

    def __init__(self, receiver: Receiver, fetch: Fetch) -> None:
        self._receiver = receiver
        self._fetch = fetch

    async def handle(
        self,
        consumer: DeadLetterConsumer,
        handler: DeadLetterHandler,
        envelope: Envelope,
        deliveries: int,
    ) -> Disposition:
        """Handle a dead letter and publish the returned messages; errors become a disposition."""
        began = monotonic()
        outcome = await self._handle(consumer, handler, envelope, deliveries)
        measures.count_message(consumer.durable, outcome, deliveries, began)
        return outcome

    async def _handle(
        self,
        consumer: DeadLetterConsumer,
        handler: DeadLetterHandler,
        envelope: Envelope,
        deliveries: int,
    ) -> Disposition:
        with tracing.receiving(
            "handle", "dead-letter", names.DEAD_STREAM, envelope.headers
        ) as span:
            try:
                dead = await self.open(parse_dead_letter(envelope))
                if dead is not None:
                    for message in await handler(dead):
                        await self._receiver.publish(message)
            except Exception as error:
                tracing.mark_failed(span, error)
                outcome = dispose(error, consumer, deliveries)
                log.warning("a dead letter of %s: %s", envelope.subject, outcome, exc_info=error)
                return outcome
        return Done()

    async def open(self, letter: DeadLetterEntry) -> DeadMessage | None:
        """Return what a dead letter says of its message; None, and log a warning, if the letter or
        message has no valid signature."""
        consumer = _CONSUMERS.get(letter.durable)
        if consumer is None or not consumer.message.signed:
            return None
        try:
            envelope = await self._delivered(letter, consumer)
        except Rejected as error:
            log.warning("a dead letter of %s is ignored: %s", letter.durable, error)
            return None
        address = names.parse_subject(envelope.subject)
        return DeadMessage(
            consumer=consumer.durable,
            message_id=envelope.headers.get(codec.MSG_ID, ""),
            scope=address.scope,
            entity=address.entity,
            reason=letter.reason,
        )

    async def _delivered(self, letter: DeadLetterEntry, consumer: Consumer[Message]) -> Envelope:
        """Return the message as delivered. Raises Rejected if it, or the letter, was not signed by
        its sender."""
        identity = self._receiver.identity
        if letter.by_server:
            stream, _, sequence = letter.subject.rpartition("/")
            found = await self._fetch(stream, int(sequence))
            if found is None:
                raise Rejected(f"{letter.subject} is no longer stored")
        else:
            content = _signed_letter(
                names.dead_subject(letter.durable), letter.headers, letter.data
            )
            fault = identity.fault(
                consumer.service, content, letter.headers.get(DEAD_LETTER_SIGNATURE)
            )
            if fault is not None:
                raise Rejected(f"the dead letter is not valid: {fault}")
            delivered = {was: letter.headers.get(name, "") for was, name in _RENAMED.items()}
            found = Envelope(letter.subject, letter.data, {**letter.headers, **delivered})
        if codec.type_of_subject(found.subject) is not consumer.message:
            raise Rejected(f"{found.subject} is not for {consumer.durable}")
        codec.require_authentic(consumer.message, found, identity)
        return found
