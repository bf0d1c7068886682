"""Export of our distributions with what the SDK has collected.

The SDK's histograms take longer for a measurement than everything else here together, and
OpenTelemetry has none that are read at the collection; ours are cumulative.
"""

import time
from dataclasses import replace

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExporter,
    MetricExportResult,
    MetricsData,
)
from typing_extensions import override

from pml_common.telemetry.instruments import Distribution, distributions


class DistributionExporter(MetricExporter):
    """Passes on to another exporter."""

    def __init__(self, exporter: MetricExporter) -> None:
        super().__init__()
        self._exporter = exporter

    @override
    def export(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: object
    ) -> MetricExportResult:
        """Export with the distributions."""
        return self._exporter.export(  # pyright: ignore[reportUnknownMemberType] # bare **kwargs
            with_distributions(metrics_data), timeout_millis, **kwargs
        )

    @override
    def force_flush(self, timeout_millis: float = 10_000) -> bool:
        """Flush the other exporter."""
        return self._exporter.force_flush(timeout_millis)

    @override
    def shutdown(self, timeout_millis: float = 30_000, **kwargs: object) -> None:
        """Shut the other exporter down."""
        self._exporter.shutdown(timeout_millis, **kwargs)  # pyright: ignore[reportUnknownMemberType]


def with_distributions(collected: MetricsData) -> MetricsData:
    """Return what was collected with the present distributions, in the scope of our sums."""
    now = time.time_ns()
    ours = [metric for each in distributions() if (metric := _metric(each, now)) is not None]
    if not ours or not collected.resource_metrics:
        return collected
    first, *others = collected.resource_metrics
    scoped = [
        replace(each, metrics=[*each.metrics, *ours]) if each.scope.name == "pml" else each
        for each in first.scope_metrics
    ]
    return MetricsData([replace(first, scope_metrics=scoped), *others])


def _metric(distribution: Distribution, now: int) -> Metric | None:
    declared, points = distribution.metric, list[HistogramDataPoint]()
    for attributes, counted in distribution.counted():
        points.append(
            HistogramDataPoint(
                attributes,
                start_time_unix_nano=distribution.since,
                time_unix_nano=now,
                count=sum(counted.counts),
                sum=counted.total,
                bucket_counts=counted.counts,
                explicit_bounds=declared.buckets,
                min=counted.least,
                max=counted.most,
            )
        )
    if not points:
        return None
    data = Histogram(points, AggregationTemporality.CUMULATIVE)
    return Metric(declared.name, declared.description, declared.unit, data)
