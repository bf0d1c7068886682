"""Expected causes of failed runs in a campaign: pure functions on its records."""

from collections.abc import Iterator, Sequence

from pml_common.contracts.catalog import EXECUTOR_ON_RUN_WORKFLOW
from tests.faults.records import Injection, Run

INTERRUPTING = ("kill gateway", "kill tally", "kill depot", "outage depot", "freeze depot")
"""Faults that make the outcome of a call in progress unknowable. A frozen server may, once resumed,
close a connection as idle on which a call has just been sent."""

TAKING_TIME = ("postgres", "gateway", "executor", "tally", "depot")
"""Without these a run waits while its time passes; time without NATS is given back."""

TAKEN_OVER_S = EXECUTOR_ON_RUN_WORKFLOW.ack_wait_s
"""After this long the runs of an executor that fell are delivered to the next."""

TIME_LOST = 0.5
"""A run that lost more than this share of its time to faults may time out."""


def during(run: Run, injections: Sequence[Injection]) -> list[Injection]:
    """The faults during a run."""
    until = run.finished or float("inf")
    return [one for one in injections if one.overlaps(run.created - 1, until + 1) > 0]


def cause_of(run: Run, injections: Sequence[Injection]) -> str | None:
    """The reason why a run had to fail; None: it need not have failed."""
    if run.kind == "cancelled" and run.asked.cancelled:
        return "its caller cancelled it"
    if run.kind == "denied" and run.asked.denied:
        return "a person denied it"
    if run.kind in ("internal", "diverged", "outcome_unknown") and run.poisoned:
        return run.poisoned
    if run.kind == "outcome_unknown" and any(is_uncertain(call.end) for call in run.calls):
        names = {one.fault.name for one in during(run, injections)}
        cause = next((name for name in INTERRUPTING if name in names), None)
        if cause is not None:
            return cause
    if run.kind in ("timeout", "outcome_unknown"):
        lost = time_lost(run, injections)
        if lost > TIME_LOST * run.timeout_s:
            return f"faults took more than {TIME_LOST:.0%} of its time"
    return None


def time_lost(run: Run, injections: Sequence[Injection]) -> float:
    """Seconds of a run without something that it may have waited for."""
    until = run.finished or float("inf")
    total, counted = 0.0, run.created
    for began, ended in sorted(_standstills(injections)):
        total += max(0.0, min(ended, until) - max(began, counted))
        counted = max(counted, ended)
    return total


def _standstills(injections: Sequence[Injection]) -> Iterator[tuple[float, float]]:
    """From when to when runs may have stood still."""
    for one in injections:
        if one.fault.target in TAKING_TIME or one.fault.kind == "disk":
            ended = one.ended if one.recovered is None else one.recovered
            yield one.began, ended + (TAKEN_OVER_S if one.fault.target == "executor" else 0.0)


def is_uncertain(end: str) -> bool:
    """Whether the outcome of a call with this end in its journal is unknown."""
    return end in ("open", "outcome_unknown")
