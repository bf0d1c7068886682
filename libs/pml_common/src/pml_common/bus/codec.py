"""The wire format: a contract's JSON as the body, identity and cause as headers."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pydantic import ValidationError

from pml_common.bus import names
from pml_common.bus.errors import NotBelieved, Rejected, TooLarge, Unsigned
from pml_common.bus.identity import SIGNATURE, Identity, signed_content
from pml_common.contracts import catalog
from pml_common.contracts.base import Contract, Message
from pml_common.contracts.catalog import MessageType
from pml_common.contracts.executor import JournalAppend
from pml_common.contracts.fault_words import faults_of

MSG_ID = "Nats-Msg-Id"
EXPECTED_LAST = "Nats-Expected-Last-Subject-Sequence"
EXPECTED_ON = "Nats-Expected-Last-Subject-Sequence-Subject"
"""Header: the subjects over which `EXPECTED_LAST` counts."""
_STORED_IN = "Nats-Stream"
"""Header: the stream of a message that the server read for a client."""
CORRELATION = "Pml-Correlation-Id"
CAUSATION = "Pml-Causation-Id"
PAYLOAD = "Pml-Payload-Sha256"
INLINE_LIMIT = 256 * 1024
BODY_LIMIT = 64 * 1024 * 1024
"""The largest body: the journal of a run, with its results, is at most half as large."""

C = TypeVar("C", bound=Contract)

_BY_PREFIX = {names.prefix_of(entry): entry for entry in catalog.MESSAGES}


@dataclass(frozen=True)
class Envelope:
    """One message ready to send, or as received; `reply` is the subject on which its sender awaits
    the reply, where there is one."""

    subject: str
    data: bytes
    headers: Mapping[str, str]
    reply: str = ""


class Payloads(Protocol):
    """A store of bodies over `INLINE_LIMIT`, by their SHA-256."""

    async def put(self, key: str, data: bytes) -> None:
        """Store a body; a stored one is not written again. Raises BusUnavailable."""
        ...

    async def get(self, key: str) -> bytes | None:
        """Return the body, or None once it has expired. Raises BusUnavailable; TooLarge if what is
        stored under the key exceeds what `BODY_LIMIT` allows."""
        ...


def encode(contract: Contract) -> bytes:
    """Serialise a contract according to its published schema."""
    return contract.model_dump_json(by_alias=True).encode()


def decode(model: type[C], data: bytes) -> C:
    """Parse a body. Raises Rejected with the mismatch."""
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        raise Rejected(f"not a {model.__name__}: {'; '.join(faults_of(error))}") from error


async def opened(model: type[C], envelope: Envelope, payloads: Payloads) -> C:
    """Return the decoded contract, its body fetched from the store if needed. Raises Rejected."""
    return decode(model, await check_out(envelope.data, envelope.headers, payloads))


def type_of_subject(subject: str) -> MessageType[Message] | None:
    """Return the message type of a subject; None for an unknown type or version."""
    return _BY_PREFIX.get(".".join(subject.split(".", 5)[:5]))


async def seal(
    message: Message,
    headers: dict[str, str],
    payloads: Payloads,
    identity: Identity,
) -> Envelope:
    """Encode a message for storing, signed if its type requires it, an append of a journal behind
    its fence; adds to `headers`, which already hold the cause. Raises WrongSender."""
    entry = catalog.type_of(message)
    subject = names.subject_of(entry, message.scope, message.entity)
    data, message_id = encode(message), str(message.message_id)
    headers[MSG_ID] = message_id
    identity.require(entry.sender)
    if entry.signed:
        content = signed_content(subject, message_id, digest(data))
        headers[SIGNATURE] = identity.sign(entry.sender, content)
    if isinstance(message, JournalAppend) and message.previous is not None:
        headers[EXPECTED_LAST] = str(message.previous)
        headers[EXPECTED_ON] = names.entity_filter(message.scope, message.entity, entry.owner)
    elif entry.until_handled:
        headers[EXPECTED_LAST], headers[EXPECTED_ON] = "0", subject
    return Envelope(subject, await check_in(data, headers, payloads), headers)


def require_authentic(entry: MessageType[Message], envelope: Envelope, identity: Identity) -> None:
    """Raise Rejected unless the type's sender has signed subject, id and body (or the digest of a
    body in the store), and published an append of a journal behind its fence: the server stores
    the headers that it has enforced. Unsigned types pass."""
    headers = envelope.headers
    if not entry.signed:
        return
    if entry.is_fenced and not _is_behind_fence(envelope):
        raise NotBelieved("it was published without the fence of its journal")
    if SIGNATURE not in headers:
        raise Unsigned(f"it has no signature; the {entry.sender} signs what it publishes")
    content = signed_content(
        envelope.subject, headers.get(MSG_ID, ""), digest_of(headers, envelope.data)
    )
    fault = identity.fault(entry.sender, content, headers.get(SIGNATURE))
    if fault is not None:
        raise NotBelieved(fault)


def require_published(envelope: Envelope) -> None:
    """Raise Rejected for a delivered message that no service has published: the server delivers
    answers of its API, such as a stored body, to any subject that a client names for them. A direct
    get adds where the message is stored; without headers it has no id."""
    if _STORED_IN in envelope.headers or MSG_ID not in envelope.headers:
        raise NotBelieved("it is an answer of the server, which somebody has directed here")


def require_own_fence(entry: MessageType[Message], message: Message, envelope: Envelope) -> None:
    """Raise Rejected unless a signed append was stored behind the fence that it names itself: the
    signature does not cover the headers."""
    if not entry.signed or not isinstance(message, JournalAppend):
        return
    if envelope.headers.get(EXPECTED_LAST) != str(message.previous):
        raise NotBelieved("it was published again, behind another fence")


def _is_behind_fence(envelope: Envelope) -> bool:
    address, headers = names.parse_subject(envelope.subject), envelope.headers
    journal = names.entity_filter(address.scope, address.entity, address.owner)
    return EXPECTED_LAST in headers and headers.get(EXPECTED_ON) == journal


def digest_of(headers: Mapping[str, str], data: bytes) -> str:
    """Return the digest of a body, wherever it is stored."""
    return headers.get(PAYLOAD) or digest(data)


def digest(data: bytes) -> str:
    """Return the SHA-256 of a body, in hex."""
    return hashlib.sha256(data).hexdigest()


async def check_in(
    data: bytes, headers: dict[str, str], payloads: Payloads, inline_limit: int = INLINE_LIMIT
) -> bytes:
    """Store a body of more than `inline_limit` bytes and put its reference into `headers`; returns
    the body to send. Raises TooLarge for one of more than `BODY_LIMIT`."""
    if len(data) <= inline_limit:
        return data
    if len(data) > BODY_LIMIT:
        raise TooLarge(f"a body of {len(data):,} bytes is refused: at most {BODY_LIMIT:,} are sent")
    key = digest(data)
    await payloads.put(key, data)
    headers[PAYLOAD] = key
    return b""


async def check_out(data: bytes, headers: Mapping[str, str], payloads: Payloads) -> bytes:
    """Return the body, fetched from the store if needed. Raises Rejected if the store no longer has
    it, or has another under its name."""
    key = headers.get(PAYLOAD)
    if key is None:
        return data
    stored = await payloads.get(key)
    if stored is None or digest(stored) != key:
        raise Rejected(f"payload {key} is no longer in {names.PAYLOAD_STREAM}")
    return stored
