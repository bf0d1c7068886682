"""LineBuffer of bounded length from pieces of any length."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_gateway.adapters.mcp_client.lines import LineBuffer, LineTooLong


def lines_of(pieces: list[bytes], limit: int) -> list[bytes]:
    lines = LineBuffer(limit)
    return [line for piece in pieces for line in lines.feed(piece)]


@given(st.lists(st.binary(max_size=8) | st.just(b"\n")))
def test_however_the_bytes_come_the_lines_are_the_same(pieces: list[bytes]) -> None:
    assert lines_of(pieces, 1000) == b"".join(pieces).split(b"\n")[:-1]


@pytest.mark.parametrize(
    "pieces", [[b"12345"], [b"12", b"34", b"5"], [b"1\n12345\n"], [b"1\n123", b"45\n1\n"]]
)
def test_a_line_beyond_the_limit_is_refused_before_its_end(pieces: list[bytes]) -> None:
    with pytest.raises(LineTooLong, match="it wrote a line of more than 4 bytes"):
        lines_of(pieces, 4)


def test_a_line_of_just_the_limit_is_taken_and_lines_before_a_long_one_are_handed_on() -> None:
    assert lines_of([b"1234\n12", b"34\n"], 4) == [b"1234", b"1234"]
    lines = LineBuffer(4)
    fed = lines.feed(b"ab\n12345")
    assert next(fed) == b"ab"
    with pytest.raises(LineTooLong):
        next(fed)
