"""Cursors over lists of records and over their histories."""

from dataclasses import dataclass
from typing import Annotated, Final
from uuid import UUID

from pydantic import Field, TypeAdapter, ValidationError

from pml_common.contracts.cursors import (
    BadCursor,
    Name,
    Rank,
    decode_cursor,
    encode_cursor,
)

_AFTER: Final[TypeAdapter[tuple[int, str, UUID]]] = TypeAdapter(tuple[Rank, Name, UUID])
_SEQUENCE: Final[TypeAdapter[int]] = TypeAdapter(Annotated[int, Field(ge=1, lt=2**31)])


@dataclass(frozen=True)
class After:
    """The last record of a page: its rank in the order asked for, its name and its id."""

    rank: int
    name: str
    record_id: UUID


def encode_after(after: After) -> str:
    """Return the cursor of the page after this record."""
    return encode_cursor([after.rank, after.name, str(after.record_id)])


def decode_after(cursor: str) -> After:
    """Parse a cursor. Raises BadCursor."""
    try:
        return After(*_AFTER.validate_json(decode_cursor(cursor)))
    except ValidationError:
        raise BadCursor from None


def encode_sequence(sequence: int) -> str:
    """Return the cursor of the changes before this one."""
    return encode_cursor(sequence)


def decode_sequence(cursor: str) -> int:
    """Parse a cursor. Raises BadCursor."""
    try:
        return _SEQUENCE.validate_json(decode_cursor(cursor))
    except ValidationError:
        raise BadCursor from None
