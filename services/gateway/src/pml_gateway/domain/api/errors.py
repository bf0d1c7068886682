"""Errors of requests; each message tells the sender what to do."""

from typing import Literal


class InvalidRequest(Exception):
    """A field of a request is invalid; `field` is its dotted name, None where the message says
    what is."""

    def __init__(self, field: str | None, message: str) -> None:
        super().__init__(message if field is None else f"{field} {message}")
        self.field = field


class NotFound(Exception):
    """Not found in the caller's scope."""


class Gone(NotFound):
    """It was in the caller's scope, and its data was deleted."""


class ResultUnavailable(Exception):
    """A result cannot be returned: there is none of this name (`unknown`), it is not known yet
    (`not_yet`), or it is no longer kept (`expired`), also where its data was deleted."""

    def __init__(self, kind: Literal["unknown", "not_yet", "expired"], message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Conflict(Exception):
    """The request conflicts with the current state."""


class Unavailable(Exception):
    """A dependency does not respond; nothing was accepted. Try again later."""


class Busy(Exception):
    """Too many executions are queued; nothing was accepted. Try again after `retry_after_s`."""

    def __init__(self, message: str, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Unauthorized(Exception):
    """The request lacks a required credential."""


class Forbidden(Exception):
    """The caller, or the address it used, is not allowed."""
