"""What can go wrong on the bus, and what a handler can say went wrong."""

from typing import Literal

from pml_common.errors import Rejected, Retryable

__all__ = [
    "Behind",
    "BusError",
    "BusUnavailable",
    "Fenced",
    "Lost",
    "NobodyThere",
    "Overrun",
    "QueryErrorCode",
    "QueryFailed",
    "Rejected",
    "Retryable",
    "TooFewServers",
    "Unreadable",
]

QueryErrorCode = Literal["not_found", "invalid", "conflict", "unavailable", "internal"]


class BusError(Exception):
    """The bus could not do what was asked."""


class BusUnavailable(BusError, Retryable):
    """No answer from the server in time; nothing is known to be stored. Try again later."""


class TooFewServers(BusError):
    """More replicas are configured than the NATS servers can hold; `may_pass` where they are a
    cluster, of which some may not be there yet."""

    def __init__(self, stream: str, replicas: int, said: str, *, may_pass: bool = False) -> None:
        super().__init__(
            f"{stream} cannot have {replicas} replicas on the servers that are there ({said}): "
            "start more NATS servers, as one cluster, or configure fewer replicas "
            "(PML_STREAM_REPLICAS)"
        )
        self.may_pass = may_pass


class Behind(BusUnavailable):
    """The server that answered does not have what we saw stored: it was parted from its cluster and
    catches up, or has lost it. Nothing was stored."""


class Fenced(BusError):
    """Somebody else appended to this subject since we last saw it: stop, it is theirs now."""

    def __init__(self, subject: str, expected: int) -> None:
        super().__init__(f"{subject}: the last sequence is no longer {expected}")
        self.subject = subject
        self.expected = expected


class Unreadable(BusError):
    """A stored message cannot be read, or is missing: whoever needs the whole past has none."""

    def __init__(self, subject: str, sequence: int, why: str) -> None:
        super().__init__(f"{subject} message {sequence} cannot be read: {why}")
        self.sequence = sequence
        self.why = why


class Lost(Unreadable, Rejected):
    """A stored message is gone though nothing that follows it is there to tell: asking again would
    only forget that."""


class Overrun(BusError):
    """Its reader fell too far behind: what came later was left out. Read the past, follow anew."""


class QueryFailed(BusError):
    """The owner answered a query with an error; raised by its handler and again at the client.

    `unavailable` also stands for an owner that did not answer in time.
    """

    def __init__(self, code: QueryErrorCode, message: str) -> None:
        super().__init__(message)
        self.code: QueryErrorCode = code
        self.message = message


class NobodyThere(QueryFailed):
    """No replica of the owner runs: nobody got the question."""

    def __init__(self, question: str) -> None:
        super().__init__("unavailable", f"{question}: nobody is there to answer")
