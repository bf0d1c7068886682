"""Errors of the bus, and those that handlers raise."""

from collections.abc import Sequence
from typing import Literal

from pml_common.contracts.base import Message
from pml_common.errors import Rejected, Retryable, ServedElsewhere

__all__ = [
    "BusError",
    "BusUnavailable",
    "Fenced",
    "MessageLost",
    "NoResponder",
    "NotBelieved",
    "NotProvisioned",
    "Overrun",
    "QueryErrorCode",
    "QueryFailed",
    "Rejected",
    "Retryable",
    "ServedElsewhere",
    "StaleServer",
    "TooLarge",
    "Unreadable",
    "Unsigned",
]

QueryErrorCode = Literal["not_found", "invalid", "conflict", "unavailable", "internal"]

_MOST_FAULTS = 6


class BusError(Exception):
    """An operation on the bus failed."""


class BusUnavailable(BusError, Retryable):
    """No answer from the server in time; whether a message was stored is unknown. Retry later."""


class NotProvisioned(BusError):
    """Streams or consumers that a service depends on are missing, or not as configured."""

    def __init__(self, faults: Sequence[str]) -> None:
        more = f" (and {len(faults) - _MOST_FAULTS} more)" if len(faults) > _MOST_FAULTS else ""
        super().__init__(
            f"the streams on NATS are not provisioned: {'; '.join(faults[:_MOST_FAULTS])}{more}. "
            "Run `pml bus provision` as the operator (docs/streams.md)"
        )


class StaleServer(BusUnavailable):
    """The server that answered lacks a message we know to be stored: it was partitioned from its
    cluster and is catching up, or has lost it. Nothing was stored."""


class Fenced(BusError):
    """Another process appended to this subject since our last read: stop, it has taken over."""

    def __init__(self, subject: str, expected: int) -> None:
        super().__init__(f"{subject}: the last sequence is no longer {expected}")
        self.subject = subject
        self.expected = expected


class TooLarge(BusError, Rejected):
    """A body is larger than any that is stored, or what is stored in its place is."""


class NotBelieved(Rejected):
    """Its sender did not publish the message, or not as it must."""

    def __init__(self, why: str) -> None:
        super().__init__(f"not believed: {why}")


class Unsigned(NotBelieved):
    """The message has no signature."""


class Unreadable(BusError):
    """A stored message cannot be read, or is missing: the history is incomplete. A message that
    `is_foreign` is no part of it: its sender did not publish it, or its type is unknown here. Of an
    append that nobody signed, `unsigned` is what it says."""

    def __init__(
        self,
        subject: str,
        sequence: int,
        why: str,
        *,
        is_foreign: bool = False,
        unsigned: Message | None = None,
    ) -> None:
        super().__init__(f"{subject} message {sequence} cannot be read: {why}")
        self.sequence = sequence
        self.why = why
        self.is_foreign = is_foreign
        self.unsigned = unsigned


def of_unknown_type(subject: str, sequence: int) -> Unreadable:
    """Build the error of a message whose type, or version, is in no catalog here."""
    return Unreadable(subject, sequence, "its type is unknown here", is_foreign=True)


class MessageLost(Unreadable, Rejected):
    """The last stored messages are gone, so no later message shows the gap: a retry would hide
    the loss."""


class Overrun(BusError):
    """A follower fell too far behind and later messages were dropped: read the history, then
    follow again."""


class QueryFailed(BusError):
    """The owner replied to a query with an error; raised by its handler and again at the client.

    `unavailable` also means that the owner did not reply in time.
    """

    def __init__(self, code: QueryErrorCode, message: str) -> None:
        super().__init__(message)
        self.code: QueryErrorCode = code
        self.message = message


class NoResponder(QueryFailed):
    """No replica of the owner is running: the request was not delivered."""

    def __init__(self, query: str) -> None:
        super().__init__("unavailable", f"{query}: no replica is running")
