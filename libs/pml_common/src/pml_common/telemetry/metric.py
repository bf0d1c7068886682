"""Declarations of metrics, and their names in Prometheus."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "updown", "gauge", "histogram"]

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""Bucket bounds of durations within a request."""
LONG_SECONDS = (0.1, 1, 5, 15, 60, 300, 900, 3600, 14400)
"""Bucket bounds of durations in which a person acts."""
COUNTS = (1, 2, 5, 10, 20, 50, 100, 200)

_UNITS = {"s": "seconds", "By": "bytes"}
_SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum")}


@dataclass(frozen=True)
class Attribute:
    """An attribute and its values: the allowed ones, or a text on what bounds them."""

    name: str
    values: tuple[str, ...] | str

    def allows(self, value: str) -> bool:
        """Whether it may have this value."""
        return isinstance(self.values, str) or value in self.values


@dataclass(frozen=True)
class Metric:
    """A declared metric; `unit` by UCUM, with what is counted in braces. Measurements name the
    values of all attributes, in this order."""

    name: str
    kind: Kind
    unit: str
    description: str
    attributes: tuple[Attribute, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def prometheus_name(self) -> str:
        """Its name in Prometheus, without the suffix of its samples."""
        name, unit = self.name.replace(".", "_"), _UNITS.get(self.unit)
        return name if unit is None or name.endswith(f"_{unit}") else f"{name}_{unit}"

    @property
    def samples(self) -> tuple[str, ...]:
        """The names of its samples in Prometheus."""
        suffixes = _SUFFIXES.get(self.kind, ("",))
        return tuple(self.prometheus_name + suffix for suffix in suffixes)


def one_of(name: str, *values: str) -> Attribute:
    """Declare an attribute with fixed values."""
    return Attribute(name, values)


def configured(name: str, by: str) -> Attribute:
    """Declare an attribute whose values the code or the configuration bounds, and how."""
    return Attribute(name, by)


def counter(name: str, unit: str, description: str, *attributes: Attribute) -> Metric:
    """Declare a sum that only grows."""
    return Metric(name, "counter", unit, description, attributes)


def updown(name: str, unit: str, description: str, *attributes: Attribute) -> Metric:
    """Declare a sum that grows and shrinks."""
    return Metric(name, "updown", unit, description, attributes)


def gauge(name: str, unit: str, description: str, *attributes: Attribute) -> Metric:
    """Declare a present value."""
    return Metric(name, "gauge", unit, description, attributes)


def histogram(
    name: str,
    unit: str,
    description: str,
    *attributes: Attribute,
    buckets: tuple[float, ...] = SECONDS,
) -> Metric:
    """Declare a distribution; its count is the number of occurrences."""
    return Metric(name, "histogram", unit, description, attributes, buckets)
