"""Entries that are not stored yet."""

from uuid import UUID

from pml_common.contracts.trace import LogWritten
from pml_executor.domain.entry_queue import EntryQueue


def line(text: str) -> LogWritten:
    return LogWritten(trace_id=UUID(int=1), ts=1.0, level="info", message=text)


def test_entries_are_taken_in_order_as_many_as_fit() -> None:
    queue, lines = EntryQueue(max_bytes=10), [line(str(n)) for n in range(4)]
    for entry, size in zip(lines, (4, 5, 2, 1), strict=True):
        queue.put(entry, size)
    assert queue.is_full
    assert queue.take() == lines[:2]
    assert not queue.is_full
    assert queue.take() == lines[2:]
    assert queue.is_empty
    assert queue.take() == []
    assert queue.noted == 4


def test_an_entry_larger_than_an_append_may_be_is_taken_alone() -> None:
    queue, large, small = EntryQueue(max_bytes=10), line("large"), line("small")
    queue.put(large, 11)
    queue.put(small, 1)
    assert queue.is_full
    assert queue.take() == [large]
    assert not queue.is_full
    assert queue.take() == [small]
