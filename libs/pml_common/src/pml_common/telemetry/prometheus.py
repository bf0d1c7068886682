"""The reader for scrapes; imported at the first one, as it takes a megabyte of memory."""

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricsData
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from typing_extensions import override

from pml_common.telemetry.readers import with_distributions

MEDIA_TYPE = CONTENT_TYPE_LATEST
_SERVICE = "service.name"


class _Reader(PrometheusMetricReader):
    @override
    def _receive_metrics(
        self, metrics_data: MetricsData, timeout_millis: float = 10_000, **kwargs: object
    ) -> None:
        super()._receive_metrics(  # pyright: ignore[reportUnknownMemberType] # bare **kwargs
            with_distributions(metrics_data), timeout_millis, **kwargs
        )


class PrometheusText:
    """The metrics of a provider, in a registry of their own."""

    def __init__(self, provider: MeterProvider) -> None:
        self._registry = CollectorRegistry()
        reader = _Reader(
            disable_target_info=True,
            scope_info_enabled=False,
            resource_attribute_filter=lambda name: name == _SERVICE,
            registry=self._registry,
        )
        provider.add_metric_reader(reader)

    def collect(self) -> bytes:
        """Return the present values in Prometheus's text format."""
        return generate_latest(self._registry)
