"""Errors of requests; each message tells the sender what to do."""


class InvalidRequest(Exception):
    """A field of a request is invalid; `field` is its dotted name."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field} {message}")
        self.field = field


class InvalidQuery(InvalidRequest):
    """The owner of a query says what is invalid about it, with the part at fault."""

    def __init__(self, message: str) -> None:
        super().__init__("query", message)
        self.args = (message,)


class NotFound(Exception):
    """Not found in the caller's scope."""


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
