"""Use of capabilities in words: runs by how they ended, success rate with interval, health."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from pml_cli.markup import escape
from pml_cli.render.values import milliseconds

if TYPE_CHECKING:
    from pml_common.contracts.capability import Health, Usage

HEALTH_STYLES: Final[dict["Health", str]] = {
    "healthy": "green",
    "unproven": "dim",
    "degraded": "yellow",
    "failing": "red",
}


COUNTED: Final[dict[str, str]] = {"version": "of this version", "record": "of all versions"}
"""The subject of a use, in words."""
LATEST: Final = "runs and success are those of the latest version"
"""The subject of the columns in a list of capabilities."""


def use_text(usage: "Usage") -> str:
    """Runs by how they ended, of what, and their mean duration."""
    counted = COUNTED[usage.counts]
    if not usage.count:
        return f"no runs {counted}"
    failed = usage.judged - usage.success_count
    ends = (
        f"{usage.success_count} succeeded",
        f"{failed} failed by itself" if failed > 0 else "",
        f"{usage.caller_faults} by its caller" if usage.caller_faults else "",
        f"{usage.environment_faults} by its environment" if usage.environment_faults else "",
    )
    how = ", ".join(end for end in ends if end)
    runs = f"{usage.count} run{'' if usage.count == 1 else 's'} {counted}"
    return f"{runs}: {how}; {milliseconds(usage.mean_duration_ms)} on average"


def rate_text(usage: "Usage") -> str:
    """The learned success rate with its interval; without one the share of judged runs that
    succeeded."""
    if usage.value is None and not usage.judged:
        return "-"
    return interval_text(usage.rate, usage.low, usage.high)


def interval_text(value: float, low: float | None, high: float | None) -> str:
    """A share with its interval, if it has one: `83% (61-94)`."""
    if low is None or high is None:
        return f"{value:.0%}"
    return f"{value:.0%} ({low * 100:.0f}-{high * 100:.0f})"


def others_text(usage: "Usage") -> str:
    """Runs that failed by others and are not judged: `2 caller, 1 environment`."""
    counted = (("caller", usage.caller_faults), ("environment", usage.environment_faults))
    return ", ".join(f"{count} {whose}" for whose, count in counted if count)


def health_text(health: "Health", last_good: str | None = None) -> str:
    """The health, in its colour, with the reference to call instead."""
    style = HEALTH_STYLES[health]
    instead = f" [dim]use {escape(last_good)}[/]" if last_good else ""
    return f"[{style}]{health}[/]{instead}"


def health_of(one: Mapping[str, object]) -> str:
    """The health of a capability in an answer."""
    good = one.get("last_good")
    health = cast("Health", one.get("health") or "unproven")
    return health_text(health, None if good is None else str(good))
