"""Translation of errors of storage, bus and queries into errors of the API."""

from collections.abc import Generator
from contextlib import contextmanager

from pml_common.bus.errors import BusUnavailable, QueryFailed
from pml_common.storage.errors import StorageUnavailable
from pml_gateway.domain.api.errors import Conflict, InvalidQuery, NotFound, Unavailable

DEPENDENCY_ERRORS = (StorageUnavailable, BusUnavailable, QueryFailed)


@contextmanager
def as_api_errors() -> Generator[None]:
    """Raise outages and failed queries as errors of `domain.api.errors`."""
    try:
        yield
    except DEPENDENCY_ERRORS as error:
        raise api_error(error) from error


def api_error(error: Exception) -> Exception:
    """Return the API's error for one of a dependency; any other error is returned unchanged."""
    match error:
        case StorageUnavailable() | BusUnavailable() | QueryFailed(code="unavailable"):
            return Unavailable(str(error))
        case QueryFailed(code="not_found"):
            return NotFound(error.message)
        case QueryFailed(code="invalid"):
            return InvalidQuery(error.message)
        case QueryFailed(code="conflict"):
            return Conflict(error.message)
        case _:
            return error
