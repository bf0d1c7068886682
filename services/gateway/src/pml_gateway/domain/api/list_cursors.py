"""Cursors of the gateway's own lists: the last entry of a page, after which the next one begins.
Entries that come or go meanwhile move none twice and none past it, as they do with an offset."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar
from uuid import UUID

from pydantic import AwareDatetime, TypeAdapter, ValidationError

from pml_common.contracts.cursors import BadCursor, decode_cursor, encode_cursor
from pml_gateway.domain.api.errors import InvalidRequest

_AFTER: Final[TypeAdapter[tuple[datetime, UUID]]] = TypeAdapter(tuple[AwareDatetime, UUID])

T = TypeVar("T")


@dataclass(frozen=True)
class After:
    """The place of an entry in a list: its time there, and the id of its workflow."""

    at: datetime
    workflow_id: UUID


def encode_after(after: After) -> str:
    """Return the cursor of the page after this entry."""
    return encode_cursor(_AFTER.dump_python((after.at, after.workflow_id), mode="json"))


def sole_cursor(cursor: str | None, offset: int) -> str | None:
    """Return the cursor, which another service parses. Raises InvalidRequest for an offset beside
    it."""
    if cursor is not None and offset:
        raise InvalidRequest("cursor", "and offset exclude each other: send one of them")
    return cursor


def decode_after(cursor: str | None, offset: int = 0) -> After | None:
    """Parse a cursor; None is the first page. Raises InvalidRequest, also for an offset beside
    it."""
    cursor = sole_cursor(cursor, offset)
    if cursor is None:
        return None
    try:
        return After(*_AFTER.validate_json(decode_cursor(cursor)))
    except (BadCursor, ValidationError):
        raise InvalidRequest("cursor", "must be `next_cursor` of a page, as it is") from None


def cut(entries: Sequence[T], limit: int) -> tuple[Sequence[T], T | None]:
    """Return the entries of a page, of which one more than fit were read, and the last of them if
    another page follows."""
    page = entries[:limit]
    return page, page[-1] if len(entries) > limit else None
