"""The lines of a program's console that its caller gets."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts.trace import DecisionTaken, LogWritten, TraceEvent
from pml_executor.domain.logs import MOST_CHARACTERS, MOST_LINES, last_lines

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


def test_the_last_lines_are_kept() -> None:
    lines, omitted = last_lines([written(str(n)) for n in range(MOST_LINES + 5)])
    assert (lines[0].message, lines[-1].message) == ("5", str(MOST_LINES + 4))
    assert omitted == 5


def test_one_line_that_is_too_long_is_cut() -> None:
    (line,), omitted = last_lines([written("a"), written("b" * (MOST_CHARACTERS + 1))])
    assert line.message == "b" * (MOST_CHARACTERS - 1) + "…"
    assert omitted == 1


@given(lengths=st.lists(st.integers(0, 12_000), max_size=300))
def test_lines_stay_within_their_limits_and_none_is_lost_in_silence(lengths: list[int]) -> None:
    lines, omitted = last_lines([written("x" * length) for length in lengths])
    assert len(lines) + omitted == len(lengths)
    assert len(lines) <= MOST_LINES
    assert sum(len(line.message) for line in lines) <= MOST_CHARACTERS
    assert bool(lines) == bool(lengths)
