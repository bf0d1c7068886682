"""The threshold of speculation: what moves it, and how far at most."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts.error import ErrorKind, Fault, WorkflowError
from pml_gateway.domain.api.speculation_threshold import (
    DOWN,
    PER_HOUR,
    PRINCIPAL_SHARE,
    UP,
    Opinion,
    SpeculatedRun,
    ThresholdRule,
    threshold_of,
)
from services.gateway.tests.support.builders import AT

RULE = ThresholdRule(0.5, 0.1)
HOUR = timedelta(hours=1)
USER: ErrorKind = "user_error"


def run(
    number: int,
    good: bool | None = True,
    *,
    principal: str = "mira",
    hour: int = 0,
    kind: ErrorKind = USER,
    opinions: tuple[Opinion, ...] = (),
) -> SpeculatedRun:
    at = AT + hour * HOUR
    if good is None:
        return SpeculatedRun(UUID(int=number), principal, at, "running", None, opinions)
    error = None if good else WorkflowError(kind=kind, message="no")
    state = "succeeded" if good else "failed"
    return SpeculatedRun(UUID(int=number), principal, at, state, error, opinions)


def test_without_runs_it_is_the_configured_one() -> None:
    assert threshold_of(RULE, ()).threshold == 0.5


def test_it_rises_by_a_step_after_a_bad_guess_and_falls_after_a_good_one() -> None:
    assert threshold_of(RULE, [run(1, False)]).threshold == pytest.approx(0.5 + UP)
    assert threshold_of(RULE, [run(1)]).threshold == pytest.approx(0.5 + DOWN)
    assert pytest.approx(0) == UP + 9 * DOWN  # one bad guess in ten leaves it where it is


@pytest.mark.parametrize(
    "kind",
    ["denied", "cancelled", "rejected", "syntax", "timeout", "outcome_unknown", "internal"],
)
def test_faults_of_the_caller_and_the_environment_teach_nothing(kind: ErrorKind) -> None:
    found = threshold_of(RULE, [run(1, False, kind=kind), run(2, None)])
    assert (found.threshold, found.good, found.bad) == (0.5, 0, 0)


@pytest.mark.parametrize("fault", ["caller", "environment"])
def test_an_error_that_says_whose_fault_it_was_is_believed(fault: Fault) -> None:
    away = WorkflowError(kind="tool_error", message="its server is away", fault=fault)
    assert threshold_of(RULE, [replace(run(1, False), error=away)]).threshold == 0.5
    own = away.model_copy(update={"fault": "capability"})
    assert threshold_of(RULE, [replace(run(1, False), error=own)]).bad == 1


def test_a_workflow_that_is_not_stored_or_lost_its_error_teaches_nothing() -> None:
    runs = [
        SpeculatedRun(UUID(int=1), "mira", AT),
        SpeculatedRun(UUID(int=2), "mira", AT, "failed"),
    ]
    assert threshold_of(RULE, runs).threshold == 0.5


def test_the_opinion_of_whom_it_ran_for_stands_for_the_run() -> None:
    useless = run(1, True, opinions=(Opinion("mira", False, AT),))
    found = threshold_of(RULE, [useless])
    assert (found.good, found.bad) == (0, 1)


def test_the_opinion_of_another_stands_beside_the_run() -> None:
    found = threshold_of(RULE, [run(1, True, opinions=(Opinion("noor", False, AT),))])
    assert (found.good, found.bad, found.principals) == (1, 1, 2)


def test_a_burst_of_one_principal_counts_as_far_as_an_hour_allows() -> None:
    burst = [run(each, False) for each in range(500)]
    found = threshold_of(RULE, burst)
    assert found.threshold == pytest.approx(0.5 + PER_HOUR * UP)
    assert (found.bad, found.left_out) == (PER_HOUR, 500 - PER_HOUR)
    useful = [run(each, None, opinions=(Opinion("mira", True, AT),)) for each in range(500)]
    assert threshold_of(RULE, useful).threshold == pytest.approx(0.5 + PER_HOUR * DOWN)


def test_one_principal_moves_it_so_far_and_no_further_however_long() -> None:
    long = [run(each, False, hour=each) for each in range(300)]
    assert threshold_of(RULE, long).threshold == pytest.approx(0.56)
    praise = [run(each, True, hour=each) for each in range(300)]
    assert threshold_of(RULE, praise).threshold == pytest.approx(0.44)


def test_many_principals_reach_the_bounds_and_no_more() -> None:
    runs = [run(n, False, principal=f"p{n % 9}", hour=n) for n in range(300)]
    assert threshold_of(RULE, runs).threshold == 0.6
    near = replace(RULE, configured=0.95)
    assert threshold_of(near, runs).threshold == 1.0


def test_a_fixed_threshold_stays() -> None:
    found = threshold_of(ThresholdRule(0.7, 0), [run(1, False)])
    assert (found.threshold, found.fixed, found.bad) == (0.7, True, 0)


_RUNS = st.lists(
    st.builds(
        run,
        st.integers(0, 10_000),
        st.sampled_from([True, False, None]),
        principal=st.sampled_from(["ada", "ben", "cleo"]),
        hour=st.integers(0, 40),
        opinions=st.lists(
            st.builds(
                Opinion,
                st.sampled_from(["ada", "ben"]),
                st.booleans(),
                st.integers(0, 40).map(lambda hour: AT + hour * HOUR),
            ),
            max_size=2,
            unique_by=lambda each: each.principal,
        ).map(tuple),
    ),
    max_size=60,
)


@given(_RUNS, st.randoms())
def test_it_lies_within_bounds_and_does_not_depend_on_the_order_of_reading(
    runs: list[SpeculatedRun], random: st.DataObject
) -> None:
    found = threshold_of(RULE, runs)
    assert RULE.lowest <= found.threshold <= RULE.highest
    shuffled = list(runs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert threshold_of(RULE, shuffled) == found


@given(_RUNS, st.lists(st.tuples(st.booleans(), st.integers(0, 40)), max_size=120))
def test_whatever_one_principal_does_it_ends_near_what_the_others_taught(
    runs: list[SpeculatedRun], attack: list[tuple[bool, int]]
) -> None:
    without = threshold_of(RULE, runs).threshold
    hostile = [
        run(n, good, principal="eve", hour=hour, opinions=(Opinion("eve", good, AT + hour * HOUR),))
        for n, (good, hour) in enumerate(attack, 20_000)
    ]
    judged = [
        replace(each, opinions=(*each.opinions, Opinion("eve", good, AT + hour * HOUR)))
        for each, (good, hour) in zip(runs, attack, strict=False)
    ]
    moved = threshold_of(RULE, [*judged, *runs[len(judged) :], *hostile]).threshold
    assert abs(moved - without) <= RULE.span * PRINCIPAL_SHARE + 1e-4
