"""Cursors over lists of records and over their histories."""

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Annotated, Final
from uuid import UUID

from pydantic import Field, StringConstraints, TypeAdapter, ValidationError

# Not more than a column can hold: a cursor may have been written by anybody.
_Rank = Annotated[int, Field(ge=-(2**63), lt=2**63)]
_Name = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]
_AFTER: Final[TypeAdapter[tuple[int, str, UUID]]] = TypeAdapter(tuple[_Rank, _Name, UUID])
_SEQUENCE: Final[TypeAdapter[int]] = TypeAdapter(Annotated[int, Field(ge=1, lt=2**31)])


class BadCursor(ValueError):
    """A text that no page was answered with."""

    def __init__(self) -> None:
        super().__init__("the cursor is none of ours: send `next_cursor` of a page as it is")


@dataclass(frozen=True)
class After:
    """The last record of a page: its rank in the order asked for, its name and its id."""

    rank: int
    name: str
    record_id: UUID


def encode_after(after: After) -> str:
    """Return the cursor of the page after this record."""
    return _encode([after.rank, after.name, str(after.record_id)])


def decode_after(cursor: str) -> After:
    """Parse a cursor. Raises BadCursor."""
    try:
        return After(*_AFTER.validate_json(_decode(cursor)))
    except ValidationError:
        raise BadCursor from None


def encode_sequence(sequence: int) -> str:
    """Return the cursor of the changes before this one."""
    return _encode(sequence)


def decode_sequence(cursor: str) -> int:
    """Parse a cursor. Raises BadCursor."""
    try:
        return _SEQUENCE.validate_json(_decode(cursor))
    except ValidationError:
        raise BadCursor from None


def _encode(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _decode(cursor: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    except (binascii.Error, ValueError):
        raise BadCursor from None
