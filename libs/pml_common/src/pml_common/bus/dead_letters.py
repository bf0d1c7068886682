"""What could not be handled, kept with its reason."""

import json
from dataclasses import dataclass

from nats.aio.client import Client
from nats.aio.msg import Msg

from pml_common.bus import codec, names
from pml_common.bus.codec import Envelope
from pml_common.bus.journal import read_stored
from pml_common.bus.publish import NatsPublisher

REASON = "Pml-Dead-Reason"
SUBJECT = "Pml-Dead-Subject"
DELIVERIES = "Pml-Dead-Deliveries"
_NOT_KEPT = (codec.MSG_ID, codec.EXPECTED_LAST)
_REASON_LIMIT = 4000


@dataclass(frozen=True)
class DeadLetter:
    """A message that `durable` gave up; `data` as it was delivered.

    The server's own burials (a replica died on the last delivery) have no data, and their
    subject is `<stream>/<sequence>`: the message is still there.
    """

    durable: str
    subject: str
    reason: str
    deliveries: int
    data: bytes


def letter_headers(envelope: Envelope, reason: str, deliveries: int) -> dict[str, str]:
    """The headers it had, and why it is dead."""
    kept = {name: value for name, value in envelope.headers.items() if name not in _NOT_KEPT}
    return kept | {
        REASON: " ".join(reason.split())[:_REASON_LIMIT],
        SUBJECT: envelope.subject,
        DELIVERIES: str(deliveries),
    }


async def bury(
    publisher: NatsPublisher, durable: str, message: Msg, envelope: Envelope, reason: str
) -> None:
    """Store a delivery in `PML_DEAD`, once however often it is buried. Raises BusUnavailable."""
    delivered = message.metadata
    headers = letter_headers(envelope, reason, delivered.num_delivered)
    headers[codec.MSG_ID] = f"{durable}/{delivered.stream}/{delivered.sequence.stream}"
    await publisher.store(names.dead_subject(durable), envelope.data, headers)


async def read_dead(client: Client) -> list[DeadLetter]:
    """All dead letters, oldest first. Raises BusUnavailable."""
    stored = await read_stored(client, names.DEAD_STREAM, ">")
    return [_parse(message) for message in stored]


def _parse(stored: Msg) -> DeadLetter:
    headers = stored.headers or {}
    subject = headers["Nats-Subject"]
    if subject.startswith(names.MAX_DELIVERIES_ADVISORIES):
        advisory = json.loads(stored.data)
        return DeadLetter(
            durable=advisory["consumer"],
            subject=f"{advisory['stream']}/{advisory['stream_seq']}",
            reason=f"not acknowledged in {advisory['deliveries']} deliveries",
            deliveries=advisory["deliveries"],
            data=b"",
        )
    return DeadLetter(
        durable=subject.removeprefix(names.dead_subject("")),
        subject=headers.get(SUBJECT, ""),
        reason=headers.get(REASON, ""),
        deliveries=int(headers.get(DELIVERIES, "0")),
        data=stored.data,
    )
