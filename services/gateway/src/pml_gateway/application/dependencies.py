"""What goes wrong in the parts we depend on, in our callers' words."""

from collections.abc import Generator
from contextlib import contextmanager

from pml_common.bus.errors import BusUnavailable, QueryFailed
from pml_common.storage.errors import StorageUnavailable
from pml_gateway.domain.api.errors import Conflict, InvalidRequest, NotFound, Unavailable

FAILURES = (StorageUnavailable, BusUnavailable, QueryFailed)


@contextmanager
def in_our_words() -> Generator[None]:
    """Turn outages and failed queries into errors of `domain.errors`."""
    try:
        yield
    except FAILURES as error:
        raise our_word_for(error) from error


def our_word_for(error: Exception) -> Exception:
    """What a caller should see of an error; a bug stays as it is."""
    match error:
        case StorageUnavailable() | BusUnavailable() | QueryFailed(code="unavailable"):
            return Unavailable(str(error))
        case QueryFailed(code="not_found"):
            return NotFound(error.message)
        case QueryFailed(code="invalid"):
            return InvalidRequest("query", error.message)
        case QueryFailed(code="conflict"):
            return Conflict(error.message)
        case _:
            return error
