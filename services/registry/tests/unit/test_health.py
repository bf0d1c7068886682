"""Health of versions, and the last good one."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts.capability import Usage
from pml_registry.domain.health import (
    failing_notice,
    health_of,
    last_good,
    reference_to,
    told_failing,
)
from pml_registry.domain.record_views import total_usage
from pml_registry.domain.versions import Version
from services.registry.tests.support.builders import NOON, record

SHARES = st.floats(0, 1)


def usage(low: float, high: float) -> Usage:
    return Usage(count=9, success_count=4, low=low, value=(low + high) / 2, high=high)


@pytest.mark.parametrize(
    ("low", "high", "health"),
    [
        (0.0, 0.49, "failing"),  # four failures in a row
        (0.0, 0.56, "degraded"),
        (0.6, 0.89, "degraded"),
        (0.44, 1.0, "unproven"),  # three successes in a row
        (0.51, 1.0, "healthy"),  # four
        (0.5, 0.9, "healthy"),
    ],
)
def test_it_is_judged_by_the_interval(low: float, high: float, health: str) -> None:
    assert health_of(usage(low, high)) == health


def test_without_judged_runs_it_is_unproven() -> None:
    assert health_of(Usage(count=3, caller_faults=3)) == "unproven"
    assert health_of(Usage(count=3, low=0.1)) == "unproven"


@given(SHARES, SHARES, SHARES)
def test_a_better_interval_is_never_judged_worse(low: float, high: float, more: float) -> None:
    low, high = sorted((low, high))
    order = ["failing", "degraded", "unproven", "healthy"]
    before = order.index(health_of(usage(low, high)))
    better = usage(low + (1 - low) * more, high + (1 - high) * more)
    assert order.index(health_of(better)) >= before


def version(number: int, health: str = "healthy", yanked: str | None = None) -> Version:
    return replace(Version(number, NOON, None, yanked), health=health)


def test_the_last_good_version_is_the_latest_healthy_one_before() -> None:
    versions = [
        version(1),
        version(2),
        version(3, yanked="leaks"),
        version(4, "unproven"),
        version(5, "failing"),
        version(6),
    ]
    assert last_good(versions, 5) == 2
    assert last_good(versions, 2) == 1
    assert last_good(versions, 1) is None


def test_who_calls_what_fails_is_told_what_to_call() -> None:
    fared = Usage(count=20, caller_faults=2, success_count=2, value=0.17, low=0.06, high=0.4)
    told = told_failing("fs:read: version 3", fared, "fs:read@2")
    assert told == (
        "fs:read: version 3 is failing: its success rate is 17% after 18 judged runs; "
        "call fs:read@2, which is healthy"
    )
    assert told_failing("fs:read: version 3", fared, None).endswith("no earlier version is healthy")


def test_use_is_added_up_over_behaviours() -> None:
    one = Usage(count=4, success_count=2, caller_faults=2, mean_duration_ms=10, value=1, low=0.3)
    two = Usage(count=3, success_count=1, environment_faults=1, mean_duration_ms=20)
    total = total_usage([one, two])
    assert total == Usage(
        counts="record",
        count=7,
        success_count=3,
        caller_faults=2,
        environment_faults=1,
        mean_duration_ms=15,
    )
    assert (total.judged, total.success_rate) == (4, 0.75)
    assert total_usage([]).mean_duration_ms == 0


def test_the_version_to_call_instead_has_a_reference() -> None:
    assert (reference_to("fs:read", 2), reference_to("fs:read", None)) == ("fs:read@2", None)


def test_only_a_failing_version_has_a_notice() -> None:
    healthy = record("fs:read")
    assert failing_notice(healthy) is None
    failing = healthy.model_copy(update={"health": "failing", "last_good": "fs:read@1"})
    assert failing_notice(failing) == told_failing(
        f"fs:read: version {failing.version}", failing.usage, "fs:read@1"
    )
