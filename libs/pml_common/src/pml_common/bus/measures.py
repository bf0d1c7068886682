"""Measurements of what a service receives on the bus."""

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Protocol

from pml_common.bus.errors import QueryFailed
from pml_common.telemetry import metrics
from pml_common.telemetry.instruments import Distribution, Gauge, Sum

_messages = Sum(metrics.BUS_MESSAGES)
_redeliveries = Sum(metrics.BUS_REDELIVERIES)
_handling = Distribution(metrics.BUS_HANDLING)
_batches = Distribution(metrics.BUS_BATCH)
_queries = Distribution(metrics.QUERIES)
pending = Gauge(metrics.BUS_PENDING)
pending_age = Gauge(metrics.BUS_PENDING_AGE)


class _Delivered(Protocol):
    @property
    def number(self) -> int: ...

    @property
    def outcome(self) -> object: ...


_OUTCOMES = {"Done": "done", "Retry": "retried", "DeadLetter": "dead_letter", "Leave": "left"}


def expect(consumer: str) -> None:
    """Begin the sums of a consumer at 0: its first dead letter is an increase."""
    for outcome in _OUTCOMES.values():
        _messages.add(0, consumer, outcome)
    _redeliveries.add(0, consumer)


def count_message(consumer: str, outcome: object, deliveries: int, began: float) -> None:
    """Count a message that was handled alone since `began`, with its disposition."""
    _handling.record(monotonic() - began, consumer)
    _messages.add(1, consumer, _OUTCOMES[type(outcome).__name__])
    if deliveries > 1:
        _redeliveries.add(1, consumer)


def count_batch(consumer: str, batch: Sequence[_Delivered], began: float) -> None:
    """Count the messages of a batch that was handled since `began`."""
    _handling.record(monotonic() - began, consumer)
    _batches.record(len(batch), consumer)
    for outcome, count in Counter(type(each.outcome).__name__ for each in batch).items():
        _messages.add(count, consumer, _OUTCOMES[outcome])
    if again := sum(each.number > 1 for each in batch):
        _redeliveries.add(again, consumer)


@contextmanager
def serving(query: str) -> Generator[None]:
    """Measure the handling of a query, and its outcome."""
    began, outcome = monotonic(), "ok"
    try:
        yield
    except QueryFailed as failure:
        outcome = failure.code
        raise
    except BaseException:
        outcome = "unavailable"
        raise
    finally:
        _queries.record(monotonic() - began, query, outcome)
