"""What travels: a contract's JSON as the body, identity and cause as headers."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pydantic import ValidationError

from pml_common.bus import names
from pml_common.bus.errors import Rejected
from pml_common.contracts import catalog
from pml_common.contracts.base import Contract, Message

MSG_ID = "Nats-Msg-Id"
EXPECTED_LAST = "Nats-Expected-Last-Subject-Sequence"
CORRELATION = "Pml-Correlation-Id"
CAUSATION = "Pml-Causation-Id"
PAYLOAD = "Pml-Payload-Sha256"
INLINE_LIMIT = 256 * 1024

C = TypeVar("C", bound=Contract)

_BY_PREFIX = {names.prefix_of(entry): entry for entry in catalog.MESSAGES}


@dataclass(frozen=True)
class Envelope:
    """One message ready to send, or as received."""

    subject: str
    data: bytes
    headers: Mapping[str, str]


class Payloads(Protocol):
    """Where bodies over `INLINE_LIMIT` wait, by their SHA-256."""

    async def put(self, key: str, data: bytes) -> None:
        """Keep a body; keeping it twice writes nothing twice. Raises BusUnavailable."""
        ...

    async def get(self, key: str) -> bytes | None:
        """The body, or None once it has expired. Raises BusUnavailable."""
        ...


def encode(contract: Contract) -> bytes:
    """Serialise a contract as its published schema says."""
    return contract.model_dump_json(by_alias=True).encode()


def decode(model: type[C], data: bytes) -> C:
    """Parse a body; Rejected says what does not fit the contract."""
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        raise Rejected(f"not a {model.__name__}: {error}") from error


def model_of(subject: str) -> type[Message] | None:
    """The contract published on a subject; None for a type or version we do not know."""
    entry = _BY_PREFIX.get(".".join(subject.split(".", 5)[:5]))
    return None if entry is None else entry.model


async def seal(
    message: Message, headers: dict[str, str], payloads: Payloads, expected_last: int | None
) -> Envelope:
    """A message ready to store; `headers` already say who caused it."""
    subject = names.subject_of(catalog.type_of(message), message.scope, message.entity)
    headers[MSG_ID] = str(message.message_id)
    if expected_last is not None:
        headers[EXPECTED_LAST] = str(expected_last)
    return Envelope(subject, await check_in(encode(message), headers, payloads), headers)


async def check_in(data: bytes, headers: dict[str, str], payloads: Payloads) -> bytes:
    """Leave a big body in the store and its reference in `headers`; returns what to send."""
    if len(data) <= INLINE_LIMIT:
        return data
    key = hashlib.sha256(data).hexdigest()
    await payloads.put(key, data)
    headers[PAYLOAD] = key
    return b""


async def check_out(data: bytes, headers: Mapping[str, str], payloads: Payloads) -> bytes:
    """The body itself, wherever it is. Raises Rejected when the store no longer has it."""
    key = headers.get(PAYLOAD)
    if key is None:
        return data
    stored = await payloads.get(key)
    if stored is None:
        raise Rejected(f"payload {key} is no longer in {names.PAYLOAD_BUCKET}")
    return stored
