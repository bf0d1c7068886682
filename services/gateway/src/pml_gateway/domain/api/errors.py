"""What can be wrong with a request, in words its sender can act on."""


class InvalidRequest(Exception):
    """A field of a request cannot be used; `field` names it, dotted."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field} {message}")
        self.field = field


class NotFound(Exception):
    """There is no such thing in the caller's scope."""


class Conflict(Exception):
    """The request does not fit how things stand now."""


class Unavailable(Exception):
    """Something we depend on does not answer; nothing was accepted. Try again later."""


class Busy(Exception):
    """Too many executions wait to begin; nothing was accepted. Try again after `retry_after_s`."""

    def __init__(self, message: str, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class Unauthorized(Exception):
    """The request needs a credential that it does not show."""


class Forbidden(Exception):
    """The request must not be answered here."""
