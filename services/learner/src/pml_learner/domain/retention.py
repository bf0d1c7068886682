"""The time for which traces are kept."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from pml_common.contracts.scope import Scope


@dataclass(frozen=True)
class Retention:
    """Traces are kept for the `default`, those of some scopes for a time of their own."""

    default: timedelta
    of_scopes: Mapping[Scope, timedelta] = field(default_factory=dict[Scope, timedelta])

    def since(self, scope: Scope, now: datetime) -> datetime:
        """The time of the oldest traces that a scope keeps."""
        return now - self.of_scopes.get(scope, self.default)

    def kept_longer(self, than: datetime, now: datetime) -> Mapping[Scope, datetime]:
        """The scopes that keep traces from before a time, each with the time of its oldest."""
        times = {scope: now - kept for scope, kept in self.of_scopes.items()}
        return {scope: since for scope, since in times.items() if since < than}


def month_of(at: datetime) -> tuple[int, int]:
    """Year and month of a time, in UTC."""
    return at.astimezone(UTC).year, at.astimezone(UTC).month
