"""Cursors of lists: the place of a page's last entry in the order of its list, after which the next
page begins. Entries that come or go meanwhile neither repeat nor hide others, as they do with an
offset."""

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from typing import Annotated, Generic, TypeVar

from pydantic import Field, StringConstraints, TypeAdapter, ValidationError

# Not more than a column can hold: a cursor may have been written by anybody.
Rank = Annotated[int, Field(ge=-(2**63), lt=2**63)]
Name = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$")]

PlaceCursor = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{1,4096}$")]
"""A mark of where the next page begins, long enough for two names; a text to be sent back as it
is."""

T = TypeVar("T")
P = TypeVar("P", bound=tuple[object, ...])


class BadCursor(ValueError):
    """A text that no page was answered with."""

    def __init__(self) -> None:
        super().__init__("the cursor is none of ours: send `next_cursor` of a page as it is")


def encode_cursor(content: object) -> str:
    """Return what a cursor holds, a JSON value, as a text for URLs."""
    return (
        base64.urlsafe_b64encode(json.dumps(content, ensure_ascii=False).encode())
        .decode()
        .rstrip("=")
    )


def decode_cursor(cursor: str) -> bytes:
    """Return the JSON text of a cursor. Raises BadCursor."""
    try:
        return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    except (binascii.Error, ValueError):
        raise BadCursor from None


class Keyset(Generic[T, P]):
    """The order of a list: its entries ascend by their places, which are all different."""

    def __init__(self, form: TypeAdapter[P], place: Callable[[T], P]) -> None:
        self._form = form
        self.place = place

    def after(self, cursor: str | None) -> P | None:
        """Parse a cursor; None is the first page. Raises BadCursor."""
        if cursor is None:
            return None
        try:
            return self._form.validate_json(decode_cursor(cursor))
        except ValidationError:
            raise BadCursor from None

    def cut(self, entries: Sequence[T], limit: int) -> tuple[tuple[T, ...], str | None]:
        """Return the entries of a page, of which one more than fit were read, and the cursor of the
        next one, if there is one."""
        page = tuple(entries[:limit])
        if len(entries) <= limit:
            return page, None
        return page, encode_cursor(self._form.dump_python(self.place(page[-1]), mode="json"))
