"""Instruments of declared metrics, and what a scrape shows of them."""

from collections.abc import Generator
from itertools import product
from typing import get_args

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    HistogramDataPoint,
    InMemoryMetricReader,
    MetricsData,
)

from libs.pml_common.tests.support.measured import Measured, measured
from pml_common.contracts.error import ErrorKind
from pml_common.contracts.gateway import ToolOutcome
from pml_common.telemetry import instruments, metrics
from pml_common.telemetry.instruments import (
    MOST_SERIES,
    OTHER,
    Distribution,
    Gauge,
    Sum,
    measuring,
)
from pml_common.telemetry.metric import Metric, counter, gauge, histogram, one_of, updown
from pml_common.telemetry.readers import with_distributions
from pml_common.telemetry.setup import metering

ASKED = counter("room.asked", "{question}", "Questions.", one_of("room.kind", "short", "long"))
HELD = updown("room.held", "{thing}", "Things.")
WARMTH = gauge("room.warmth", "s", "Warmth.", one_of("room.wall", "north", "south"))
TOOK = histogram("room.took", "s", "Time.", one_of("room.kind", "short", "long"), buckets=(1, 2))


@pytest.fixture(autouse=True)
def own_instruments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no instruments but those of the test, and the one that is always there."""
    made = vars(instruments)["_instruments"]
    always = [each for each in made if each.metric is metrics.STARTED]
    monkeypatch.setattr(instruments, "_instruments", always)


@pytest.fixture
def m() -> Generator[Measured]:
    with measured() as one:
        yield one


def test_a_sum_counts_by_the_values_of_its_attributes(m: Measured) -> None:
    asked = Sum(ASKED)
    asked.add(1, "short")
    asked.add(2, "short")
    assert m.value("room_asked_total", room_kind="short", service_name="pml-tested") == 3
    assert ("room_asked_total", {"room_kind": "long", "service_name": "pml-tested"}, 0.0) in (
        m.samples()
    )


def test_a_sum_that_shrinks_is_a_gauge(m: Measured) -> None:
    held = Sum(HELD)
    held.add(3)
    held.add(-2)
    assert m.value("room_held") == 1


def test_a_gauge_shows_what_was_set_and_what_is_read(m: Measured) -> None:
    warmth = Gauge(WARMTH)
    warmth.set(20, "north")
    with warmth.reading(lambda: {("north",): 1, ("south",): 18}):
        assert m.value("room_warmth_seconds", room_wall="north") == 21
        assert m.value("room_warmth_seconds", room_wall="south") == 18
    assert m.value("room_warmth_seconds") == 20


def test_a_distribution_has_its_own_buckets(m: Measured) -> None:
    took = Distribution(TOOK)
    for seconds in (0.5, 1.5, 9):
        took.record(seconds, "short")
    assert m.value("room_took_seconds_bucket", room_kind="short", le="1") == 1
    assert m.value("room_took_seconds_bucket", room_kind="short", le="2") == 2
    assert m.value("room_took_seconds_bucket", room_kind="short", le="+Inf") == 3
    assert m.value("room_took_seconds_count", room_kind="short") == 3
    assert m.value("room_took_seconds_sum", room_kind="short") == 11


def test_values_beyond_the_bound_count_together(m: Measured) -> None:
    asked = Sum(counter("room.asked", "{question}", "Questions.", one_of("room.kind")))
    for number in range(MOST_SERIES + 5):
        asked.add(1, f"kind {number}")
    assert m.value("room_asked_total", room_kind=OTHER) == 5
    assert m.value("room_asked_total") == MOST_SERIES + 5


def test_nothing_is_recorded_without_an_exporter_and_nothing_stays_after_it() -> None:
    asked, warmth, took = Sum(ASKED), Gauge(WARMTH), Distribution(TOOK)

    def measure() -> None:
        asked.add(1, "short")
        warmth.set(5, "north")
        took.record(1, "short")

    measure()
    with measured() as first:
        assert first.value("room_asked_total") == 0
        assert first.value("room_warmth_seconds") == 0
        measure()
        assert first.value("room_asked_total") == 1
    measure()
    with measured() as second:
        assert second.value("room_asked_total") == 0
        assert second.value("room_took_seconds_count") == 0
        assert not [name for name, _, _ in second.samples() if name.startswith("room_warmth")]


def test_one_provider_at_a_time() -> None:
    with (
        measuring(MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)),
        pytest.raises(RuntimeError, match="another provider"),
        measuring(MeterProvider([InMemoryMetricReader()], shutdown_on_exit=False)),
    ):
        raise AssertionError("entered")


def test_an_instrument_is_of_the_declared_kind() -> None:
    with pytest.raises(ValueError, match="declared as a gauge"):
        Sum(WARMTH)


def test_without_a_scrape_and_an_endpoint_there_is_nothing_to_read() -> None:
    with metering("tested", None, scraped=False) as scrape:
        assert scrape is None
        Sum(ASKED).add(1, "short")


@pytest.mark.parametrize(
    "metric",
    [each for each in metrics.METRICS if each is not metrics.STARTED],
    ids=lambda metric: metric.name,
)
def test_a_declared_metric_is_scraped_under_its_name(metric: Metric, m: Measured) -> None:
    values = ["x" if isinstance(a.values, str) else a.values[0] for a in metric.attributes]
    match metric.kind:
        case "counter" | "updown":
            Sum(metric).add(1, *values)
        case "gauge":
            Gauge(metric).set(1, *values)
        case "histogram":
            Distribution(metric).record(1, *values)
    named = {name for name, _, _ in m.samples()}
    assert named == {*metric.samples, *metrics.STARTED.samples}
    labels = {each.name.replace(".", "_") for each in metric.attributes}
    found = {key for _, has, _ in m.samples() for key in has} - {"le", "service_name"}
    assert found == labels


def test_declarations_are_complete() -> None:
    names = [each.name for each in metrics.METRICS]
    assert len(set(names)) == len(names)
    for each in metrics.METRICS:
        assert each.description.endswith("."), each.name
        assert bool(each.buckets) == (each.kind == "histogram"), each.name
        assert each.unit in ("s", "By") or (each.unit[0], each.unit[-1]) == ("{", "}"), each.name
        fixed = [a.values for a in each.attributes if not isinstance(a.values, str)]
        assert len(list(product(*fixed))) <= MOST_SERIES, each.name


def test_outcomes_are_those_of_the_contracts() -> None:
    assert set(metrics.ERROR_KINDS) == set(get_args(ErrorKind))
    statuses = ToolOutcome.model_fields["status"].annotation
    assert set(metrics.CALL_STATUS) == set(get_args(statuses))


def test_an_exporter_gets_the_distributions_with_the_sums() -> None:
    exported = InMemoryMetricReader()
    with measuring(MeterProvider([exported], shutdown_on_exit=False)):
        took = Distribution(TOOK)
        for seconds in (0.5, 2, 9):
            took.record(seconds, "long")
        collected = exported.get_metrics_data()
        assert collected is not None
        merged = with_distributions(collected)
        assert with_distributions(MetricsData([])) == MetricsData([])
    (scoped,) = merged.resource_metrics[0].scope_metrics
    found = {each.name: each for each in scoped.metrics}
    assert set(found) == {"pml.process.started", "room.took"}
    (point,) = found["room.took"].data.data_points
    assert isinstance(point, HistogramDataPoint)
    assert (point.count, point.sum, point.min, point.max) == (3, 11.5, 0.5, 9)
    assert list(point.bucket_counts) == [1, 1, 1]
    assert point.attributes == {"room.kind": "long"}
    assert 0 < point.start_time_unix_nano <= point.time_unix_nano
