"""What can go wrong on the bus, and what a handler can say went wrong."""

from typing import Literal

from pml_common.disposition import Rejected, Retryable

__all__ = [
    "BusError",
    "BusUnavailable",
    "Fenced",
    "Overrun",
    "QueryErrorCode",
    "QueryFailed",
    "Rejected",
    "Retryable",
]

QueryErrorCode = Literal["not_found", "invalid", "conflict", "unavailable", "internal"]


class BusError(Exception):
    """The bus could not do what was asked."""


class BusUnavailable(BusError, Retryable):
    """No answer from the server in time; nothing is known to be stored. Try again later."""


class Fenced(BusError):
    """Somebody else appended to this subject since we last saw it: stop, it is theirs now."""

    def __init__(self, subject: str, expected: int) -> None:
        super().__init__(f"{subject}: the last sequence is no longer {expected}")
        self.subject = subject
        self.expected = expected


class Overrun(BusError):
    """Its reader fell too far behind: what came later was left out. Read the past, follow anew."""


class QueryFailed(BusError):
    """The owner answered a query with an error; raised by its handler, re-raised at the asker.

    `unavailable` also stands for an owner that did not answer in time.
    """

    def __init__(self, code: QueryErrorCode, message: str) -> None:
        super().__init__(message)
        self.code: QueryErrorCode = code
        self.message = message
