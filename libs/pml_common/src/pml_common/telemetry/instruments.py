"""Instruments of the declared metrics.

Without an exporter a measurement is one comparison. Measurements are kept in dictionaries and read
when an exporter collects.
"""

import math
import time
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from typing import Protocol

from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation

from pml_common.telemetry import metrics
from pml_common.telemetry.metric import Kind, Metric

MOST_SERIES = 1000
"""Combinations of values of one metric; those after them count together, as `OTHER`."""
OTHER = "other"

Values = tuple[str, ...]
Read = Callable[[], Mapping[Values, float]]
"""Returns the present values by those of the attributes; exporters call it in their own thread."""


class _Instrument(Protocol):
    metric: Metric

    def start(self, meter: Meter) -> None: ...

    def stop(self) -> None: ...


_instruments: list[_Instrument] = []
_meter: Meter | None = None


def instruments() -> Iterable[Metric]:
    """Return the metrics of the instruments that the imported modules have made."""
    return [each.metric for each in _instruments]


def distributions() -> "Iterable[Distribution]":
    """Return the instruments of histograms, which an exporter reads by itself."""
    return [each for each in _instruments if isinstance(each, Distribution)]


@contextmanager
def measuring(provider: MeterProvider) -> Generator[None]:
    """Record measurements with a provider until the context exits. Raises RuntimeError if another
    is in use."""
    global _meter
    if _meter is not None:
        raise RuntimeError("measurements are recorded already, with another provider")
    _meter = provider.get_meter("pml")
    for each in _instruments:
        each.start(_meter)
    _started.set(time.time())  # something is always there: else the SDK tells exporters nothing
    try:
        yield
    finally:
        _meter = None
        for each in _instruments:
            each.stop()


def _made(instrument: _Instrument, metric: Metric, *kinds: Kind) -> None:
    """Keep an instrument, and start it if measurements are recorded. Raises ValueError."""
    if metric.kind not in kinds:
        raise ValueError(f"{metric.name} is declared as a {metric.kind}")
    _instruments.append(instrument)
    if _meter is not None:
        instrument.start(_meter)


class Sum:
    """The instrument of a counter, or of a sum that shrinks, too."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self._names = tuple(each.name for each in metric.attributes)
        self._sums: dict[Values, float] = {}
        self._is_on = False
        _made(self, metric, "counter", "updown")

    def add(self, amount: float, *values: str) -> None:
        """Add an amount, under the values of the metric's attributes."""
        if self._is_on:
            sums = self._sums
            key = values if values in sums else _bounded(values, sums)
            sums[key] = sums.get(key, 0) + amount

    def start(self, meter: Meter) -> None:
        """Record measurements with a meter."""
        self._is_on = True
        metric = self.metric
        create = (
            meter.create_observable_counter
            if metric.kind == "counter"
            else meter.create_observable_up_down_counter
        )
        create(metric.name, [self._observe], metric.unit, metric.description)
        fixed = [each.values for each in metric.attributes if not isinstance(each.values, str)]
        if metric.kind == "counter" and len(fixed) == len(self._names):
            self._sums |= dict.fromkeys(product(*fixed), 0)  # a first event is an increase from 0

    def stop(self) -> None:
        """Forget what was measured."""
        self._is_on = False
        self._sums.clear()

    def _observe(self, _: CallbackOptions) -> Iterable[Observation]:
        return _observations(self._names, self._sums.copy())


class Gauge:
    """The instrument of present values: those that were set, and those that are read when an
    exporter collects."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self._names = tuple(each.name for each in metric.attributes)
        self._set: dict[Values, float] = {}
        self._reads: list[Read] = []
        self._is_on = False
        _made(self, metric, "gauge")

    @property
    def is_on(self) -> bool:
        """Whether somebody collects its values."""
        return self._is_on

    def set(self, value: float, *values: str) -> None:
        """Set the present value under the values of the metric's attributes."""
        if self._is_on:
            self._set[values if values in self._set else _bounded(values, self._set)] = value

    @contextmanager
    def reading(self, read: Read) -> Generator[None]:
        """Take values from here too until the context exits; equal keys are added up."""
        self._reads.append(read)
        try:
            yield
        finally:
            self._reads.remove(read)

    def start(self, meter: Meter) -> None:
        """Record measurements with a meter."""
        self._is_on = True
        metric = self.metric
        meter.create_observable_gauge(metric.name, [self._observe], metric.unit, metric.description)

    def stop(self) -> None:
        """Forget what was set."""
        self._is_on = False
        self._set.clear()

    def _observe(self, _: CallbackOptions) -> Iterable[Observation]:
        found = self._set.copy()
        for read in tuple(self._reads):
            for values, value in read().items():
                found[values] = found.get(values, 0) + value
        return _observations(self._names, found)


@dataclass
class Counted:
    """The values of one combination of attributes: how many are in each bucket, and their sum."""

    counts: list[int]
    total: float = 0.0
    least: float = math.inf
    most: float = -math.inf


class Distribution:
    """The instrument of a histogram; `since` it records, in Unix nanoseconds."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.since = 0
        self._names = tuple(each.name for each in metric.attributes)
        self._counted: dict[Values, Counted] = {}
        self._is_on = False
        _made(self, metric, "histogram")

    def record(self, value: float, *values: str) -> None:
        """Add a value, under the values of the metric's attributes."""
        if not self._is_on:
            return
        counted = self._counted.get(values) or self._new(values)
        counted.counts[bisect_left(self.metric.buckets, value)] += 1
        counted.total += value
        counted.least = min(counted.least, value)
        counted.most = max(counted.most, value)

    def counted(self) -> Iterable[tuple[dict[str, str], Counted]]:
        """Return the present counts, each with its attributes."""
        return [
            (_attributes(self._names, values), replace(each, counts=each.counts.copy()))
            for values, each in self._counted.copy().items()
        ]

    def start(self, meter: Meter) -> None:
        """Record measurements; they are exported with those of the meter."""
        self._is_on = True
        self.since = time.time_ns()

    def stop(self) -> None:
        """Record nothing more."""
        self._is_on = False
        self._counted.clear()

    def _new(self, values: Values) -> Counted:
        key = _bounded(values, self._counted)
        return self._counted.setdefault(key, Counted([0] * (len(self.metric.buckets) + 1)))


def _bounded(values: Values, known: Mapping[Values, object]) -> Values:
    return values if len(known) < MOST_SERIES else (OTHER,) * len(values)


def _attributes(names: Values, values: Values) -> dict[str, str]:
    return dict(zip(names, values, strict=True))


def _observations(names: Values, found: Mapping[Values, float]) -> Iterable[Observation]:
    return [Observation(value, _attributes(names, values)) for values, value in found.items()]


_started = Gauge(metrics.STARTED)
