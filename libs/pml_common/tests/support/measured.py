"""Measurements of this process, as a scrape shows them."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager

from prometheus_client.parser import text_string_to_metric_families

from pml_common.telemetry.setup import Scrape, metering

Labels = Mapping[str, str]


class Measured:
    """The samples of one scrape after another."""

    def __init__(self, scrape: Scrape) -> None:
        self._scrape = scrape

    def samples(self) -> list[tuple[str, Labels, float]]:
        """Return every sample: its name, labels and value."""
        text = self._scrape().text.decode()
        return [
            (sample.name, sample.labels, sample.value)
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        ]

    def value(self, name: str, **labels: str) -> float:
        """Return the sum of a sample's values under these labels; 0 where there is none."""
        wanted = labels.items()
        return sum(
            value for found, has, value in self.samples() if found == name and wanted <= has.items()
        )


@contextmanager
def measured() -> Generator[Measured]:
    """Record measurements until the context exits."""
    with metering("tested", None, scraped=True) as scrape:
        assert scrape is not None
        yield Measured(scrape)
