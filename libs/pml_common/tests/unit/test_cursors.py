"""Cursors: places in the order of a list."""

import pytest
from pydantic import TypeAdapter

from pml_common.contracts.cursors import BadCursor, Keyset, Name, PlaceCursor, Rank, encode_cursor

ORDER = Keyset[tuple[int, str], tuple[int, str]](
    TypeAdapter(tuple[Rank, Name]), lambda entry: (-entry[0], entry[1])
)
ENTRIES = [(3, "c"), (2, "é\U0001f600"), (1, "a"), (1, "b")]


def test_cursors_lead_through_a_list_in_its_order() -> None:
    assert ORDER.after(None) is None
    first, cursor = ORDER.cut(ENTRIES[:3], 2)
    assert first == ((3, "c"), (2, "é\U0001f600"))
    last = ORDER.after(cursor)
    assert last is not None
    assert last == ORDER.place(ENTRIES[1])
    later = [each for each in [(9, "new"), *ENTRIES] if ORDER.place(each) > last]
    assert ORDER.cut(later, 2) == (((1, "a"), (1, "b")), None)


def test_the_cursor_of_the_longest_names_is_one() -> None:
    order = Keyset[tuple[int, str], tuple[int, str, str]](
        TypeAdapter(tuple[Rank, Name, Name]), lambda entry: (entry[0], entry[1], entry[1])
    )
    _, cursor = order.cut([(2**62, "\U0001f600" * 256)] * 2, 1)
    TypeAdapter(PlaceCursor).validate_python(cursor)


@pytest.mark.parametrize(
    "cursor",
    [
        "a",
        "none",
        "",
        encode_cursor([1]),
        encode_cursor([2**63, "a"]),
        encode_cursor([1, "a\0"]),
    ],
)
def test_a_text_that_is_no_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(BadCursor, match="next_cursor"):
        ORDER.after(cursor)
