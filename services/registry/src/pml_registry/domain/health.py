"""Health of a version: how it fares by the interval of its learned success rate."""

from collections.abc import Iterable
from typing import Final

from pml_common.contracts.capability import CapabilityRecord, Health, Usage
from pml_registry.domain.versions import Version

HALF: Final = 0.5
MOSTLY: Final = 0.9


def health_of(usage: Usage) -> Health:
    """Judge by the interval, not by the value: few runs say little, so they judge nothing.

    failing: high < 0.5; else degraded: high < 0.9; else healthy: low >= 0.5; else unproven.
    """
    if usage.low is None or usage.high is None:
        return "unproven"
    if usage.high < HALF:
        return "failing"
    if usage.high < MOSTLY:
        return "degraded"
    return "healthy" if usage.low >= HALF else "unproven"


def last_good(versions: Iterable[Version], before: int) -> int | None:
    """Return the number of the latest version before this one that is healthy and not yanked."""
    good = (
        each.number
        for each in versions
        if each.number < before and each.yanked is None and each.health == "healthy"
    )
    return max(good, default=None)


def reference_to(name: str, number: int | None) -> str | None:
    """Return the reference that calls a version; None without one."""
    return None if number is None else f"{name}@{number}"


def failing_notice(record: CapabilityRecord) -> str | None:
    """Tell of a version that is failing, and of the one to call instead; None for others."""
    if record.health != "failing":
        return None
    return told_failing(f"{record.name}: version {record.version}", record.usage, record.last_good)


def told_failing(subject: str, usage: Usage, good: str | None) -> str:
    """Say how a version fares, and which one to call."""
    judged, value = usage.judged, usage.value or 0.0
    how = f"{subject} is failing: its success rate is {value:.0%} after {judged} judged runs"
    instead = "no earlier version is healthy" if good is None else f"call {good}, which is healthy"
    return f"{how}; {instead}"
