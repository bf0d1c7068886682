"""The lines of a program's console that its caller gets."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from pml_common.contracts.trace import DecisionTaken, LogLine, LogWritten, TraceEvent
from pml_executor.domain.logs import MOST_BYTES, last_lines

TRACE = UUID(int=1)


def written(message: str) -> LogWritten:
    return LogWritten(trace_id=TRACE, ts=1, level="info", message=message)


def test_lines_are_given_in_their_order_among_the_other_entries() -> None:
    other = DecisionTaken(trace_id=TRACE, ts=1, node_id="d1", outcome="true")
    entries: list[TraceEvent] = [written("a"), other, written("b")]
    lines, omitted = last_lines(entries)
    assert [(line.level, line.message) for line in lines] == [("info", "a"), ("info", "b")]
    assert omitted == 0
    assert last_lines([other]) == ((), 0)


def test_the_last_lines_are_kept_as_far_as_their_bytes_allow() -> None:
    room = MOST_BYTES // (len(LogLine(level="info", message="x" * 1000).model_dump_json()) + 1)
    messages = [f"{n:05}".ljust(1000, "x") for n in range(room + 5)]
    lines, omitted = last_lines([written(message) for message in messages])
    assert [line.message for line in lines] == messages[5:]
    assert omitted == 5


@given(texts=st.lists(st.tuples(st.sampled_from('x"é😀'), st.integers(0, 12_000)), max_size=60))
def test_lines_stay_within_their_bytes_and_none_is_lost_in_silence(
    texts: list[tuple[str, int]],
) -> None:
    messages = [character * length for character, length in texts]
    lines, omitted = last_lines([written(message) for message in messages])
    assert [line.message for line in lines] == messages[omitted:]
    assert len(to_json(lines)) <= MOST_BYTES + 1
    assert bool(lines) == bool(messages)


def test_a_line_without_room_is_left_out() -> None:
    assert last_lines([written("a"), written("b" * MOST_BYTES)]) == ((), 2)
