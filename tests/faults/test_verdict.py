"""Each invariant of the fault campaign detects its violation."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest

from pml_common.contracts.executor import TraceRecorded
from pml_common.contracts.scope import Scope
from pml_common.contracts.trace import ToolEnd, ToolStart
from tests.faults.causes import cause_of
from tests.faults.evidence import calls_of, key_of_call, made_calls
from tests.faults.records import Asked, Evidence, Fault, Injection, Journaled, Run, Use
from tests.faults.verdict import MARGIN_S, verdicts, violations

ID = UUID(int=7)
MARK = key_of_call("tally:mark", {"n": 1, "run": "r"})
LOOK = key_of_call("tally:look", {"n": 2, "run": "r"})
PUT = key_of_call("depot:put", {"n": 3, "run": "r"})


def a_run(**changes: object) -> Run:
    """A run that made three calls and succeeded."""
    asked = Asked("r", "sequential", ID, accepted=True, told={("success", "")})
    run = Run(
        asked=asked,
        status="success",
        created=100.0,
        finished=105.0,
        timeout_s=40.0,
        ends=1,
        calls=(
            Journaled(MARK, "tally:mark", "ok"),
            Journaled(LOOK, "tally:look", "ok"),
            Journaled(PUT, "depot:put", "ok"),
        ),
    )
    return replace(run, **changes)  # pyright: ignore[reportArgumentType]


def evidence(run: Run, **changes: object) -> Evidence:
    known = Evidence(
        runs=[run],
        made={"r": Counter({MARK: 1, LOOK: 1, PUT: 1})},
        uses=[Use("steps:pair", 3, 3, 3)],
        injections=[fault("kill gateway", 101.0, 102.0)],
        health={},
        now=1000.0,
    )
    return replace(known, **changes)  # pyright: ignore[reportArgumentType]


def fault(name: str, began: float, recovered: float | None) -> Injection:
    kind, target = name.split(" ", 1)
    return Injection(Fault(kind, target), began, recovered or began, recovered)


def failed(kind: str, calls: tuple[Journaled, ...] = (), **changes: object) -> Run:
    run = a_run(status="error", kind=kind, fits=False, calls=calls, **changes)
    run.asked.told = {("error", kind)}
    return run


def asked(**changes: object) -> Run:
    run = a_run()
    return replace(run, asked=replace(run.asked, **changes))  # pyright: ignore[reportArgumentType]


def broken_by(found: Evidence) -> set[str]:
    return {one.invariant for one in verdicts(found) if not one.passed}


def test_a_campaign_that_broke_nothing_passes() -> None:
    assert violations(verdicts(evidence(a_run()))) == []


def test_an_effect_of_unknown_outcome_is_no_violation_where_its_run_says_so() -> None:
    run = failed("outcome_unknown", (Journaled(MARK, "tally:mark", "open"),))
    assert broken_by(evidence(run, made={"r": Counter({MARK: 1})})) == set()


def test_calls_that_may_be_repeated_may_reach_their_tools_twice() -> None:
    again = {"r": Counter({MARK: 1, LOOK: 3, PUT: 2})}
    assert broken_by(evidence(a_run(), made=again)) == set()


@pytest.mark.parametrize("kind", ["cancelled", "timeout", "internal"])
def test_a_run_that_was_ended_while_its_executor_was_dead_need_not_list_its_reads(
    kind: str,
) -> None:
    read = evidence(failed(kind), made={"r": Counter({LOOK: 1})})
    assert "calls = journal" not in broken_by(read)
    changed = evidence(failed(kind), made={"r": Counter({LOOK: 1, MARK: 1})})
    assert "calls = journal" in broken_by(changed)


def test_time_without_a_needed_part_does_not_count() -> None:
    run = a_run(finished=100.0 + 40 + MARGIN_S + 25)
    assert broken_by(evidence(run)) == {"nothing lives beyond its time"}
    away = [fault("outage nats", 110.0, 140.0)]
    assert broken_by(evidence(run, injections=away)) == set()


VIOLATED: dict[str, tuple[Callable[[], Evidence], str]] = {
    "a workflow does not end": (
        lambda: evidence(a_run(status="running", finished=None), now=110.0),
        "accepted = ended",
    ),
    "a workflow is gone": (
        lambda: evidence(a_run(status="missing", created=0.0)),
        "accepted = ended",
    ),
    "a workflow is there that nobody asked for": (
        lambda: evidence(a_run(), unknown=["7"]),
        "accepted = ended",
    ),
    "two ends are published": (lambda: evidence(a_run(ends=2)), "exactly one end each"),
    "no end is published": (lambda: evidence(a_run(ends=0)), "exactly one end each"),
    "a caller is told another end": (
        lambda: evidence(asked(told={("error", "internal")})),
        "exactly one end each",
    ),
    "a workflow lives on and on": (
        lambda: evidence(a_run(status="running", finished=None)),
        "nothing lives beyond its time",
    ),
    "a call is journaled that nobody made": (
        lambda: evidence(a_run(), made={"r": Counter({MARK: 1, PUT: 1})}),
        "calls = journal",
    ),
    "a call is made that no journal holds": (
        lambda: evidence(a_run(calls=a_run().calls[1:])),
        "calls = journal",
    ),
    "a run succeeds with a read that no journal holds": (
        lambda: evidence(a_run(calls=(a_run().calls[0], a_run().calls[2]))),
        "calls = journal",
    ),
    "a run succeeds with a call of unknown outcome": (
        lambda: evidence(a_run(calls=(Journaled(MARK, "", "open"), *a_run().calls[1:]))),
        "calls = journal",
    ),
    "a call is repeated that may not be": (
        lambda: evidence(a_run(), made={"r": Counter({MARK: 2, LOOK: 1, PUT: 1})}),
        "nothing repeated",
    ),
    "a call is reported as failed that took effect": (
        lambda: evidence(
            a_run(calls=(*a_run().calls[:2], Journaled(PUT, "depot:put", "tool_error")))
        ),
        "no effect is denied",
    ),
    "a run is not counted": (
        lambda: evidence(a_run(), uses=[Use("steps:pair", 2, 3, 3)]),
        "counts = runs",
    ),
    "a run is counted twice": (
        lambda: evidence(a_run(), uses=[Use("steps:pair", 4, 3, 3)]),
        "counts = runs",
    ),
    "a run fails without a cause": (
        lambda: evidence(failed("timeout"), made={}),
        "no needless failure",
    ),
    "another result comes out": (
        lambda: evidence(a_run(fits=False)),
        "results are as undisturbed",
    ),
    "the gateway breaks": (
        lambda: evidence(asked(wrong=["/api/execute answers 500"])),
        "callers get proper answers",
    ),
    "something stored cannot be read": (
        lambda: evidence(a_run(), unreadable=["PML_EXECUTOR_EVT 7"]),
        "what is stored can be read",
    ),
    "a run leaves no trace": (
        lambda: evidence(a_run(), uses=[Use("steps:pair", 3, 3, 2)]),
        "counts = runs",
    ),
    "a message is given up": (
        lambda: evidence(a_run(), dead=["learner-on-run-finished gave up one"]),
        "no message is given up",
    ),
    "a part is ill in the end": (
        lambda: evidence(a_run(), health={"nats": "does not answer"}),
        "healthy in the end",
    ),
    "a part did not recover in time": (
        lambda: evidence(a_run(), injections=[fault("kill nats", 101.0, None)]),
        "healthy in the end",
    ),
}


@pytest.mark.parametrize("name", VIOLATED)
def test_a_violation_fails_its_invariant(name: str) -> None:
    made, invariant = VIOLATED[name]
    assert invariant in broken_by(made())


KILLED = [fault("kill gateway", 101.0, 102.0)]
BUS_AWAY = [fault("outage nats", 101.0, 102.0)]
LATER = [fault("kill gateway", 201.0, 202.0)]
MOST_OF_IT = [fault("outage postgres", 101.0, 112.0), fault("disk full", 120.0, 130.0)]
LESS_OF_IT = [fault("outage postgres", 101.0, 112.0), fault("kill learner", 120.0, 130.0)]
FELL = [fault("disk full", 101.0, 117.0), fault("kill executor", 118.0, 118.5)]
AT_ONCE = [fault("disk full", 101.0, 118.0), fault("kill executor", 108.0, 112.0)]
BUS_LONG_AWAY = [fault("outage nats", 101.0, 130.0)]
FROZEN = [fault("freeze depot", 101.0, 102.0)]
UNKNOWN = (Journaled(MARK, "tally:mark", "outcome_unknown"),)
POISONED = "garbage in its journal"


@pytest.mark.parametrize(
    ("run", "injections", "cause"),
    [
        (failed("outcome_unknown", UNKNOWN), KILLED, "kill gateway"),
        (failed("outcome_unknown", UNKNOWN), FROZEN, "freeze depot"),
        (failed("outcome_unknown", UNKNOWN), LATER, None),
        (failed("outcome_unknown", UNKNOWN), BUS_AWAY, None),
        (failed("outcome_unknown"), KILLED, None),
        (failed("timeout", finished=140.0), MOST_OF_IT, "faults took more than 50% of its time"),
        (failed("timeout", finished=140.0), FELL, "faults took more than 50% of its time"),
        (failed("timeout", finished=140.0), AT_ONCE, None),
        (failed("timeout", finished=140.0), LESS_OF_IT, None),
        (failed("timeout", finished=140.0), BUS_LONG_AWAY, None),
        (failed("tool_error", finished=140.0), MOST_OF_IT, None),
        (failed("internal"), KILLED, None),
        (failed("internal", poisoned=POISONED), [], POISONED),
        (failed("timeout", poisoned=POISONED), [], None),
        (failed("tool_error"), KILLED, None),
        (failed("cancelled"), [], None),
        (failed("denied"), [], None),
    ],
)
def test_a_failure_has_a_cause_only_where_something_was_uncertain(
    run: Run, injections: list[Injection], cause: str | None
) -> None:
    assert cause_of(run, injections) == cause


@pytest.mark.parametrize(("kind", "did"), [("cancelled", "cancelled"), ("denied", "denied")])
def test_a_cancellation_or_denial_is_a_cause(kind: str, did: str) -> None:
    run = failed(kind)
    setattr(run.asked, did, True)
    assert cause_of(run, []) is not None


def test_the_calls_of_a_journal_have_the_ends_that_it_holds() -> None:
    def start(trace: int, n: int) -> ToolStart:
        return ToolStart(
            trace_id=UUID(int=trace), ts=1.0, tool="tally:mark", args={"n": n}, args_hash="h"
        )

    def append(number: int, *entries: ToolStart | ToolEnd) -> TraceRecorded:
        return TraceRecorded(
            scope=Scope(org="acme", project="web"),
            event_id=UUID(int=number),
            workflow_id=ID,
            entries=entries,
        )

    ended = ToolEnd(trace_id=UUID(int=1), ts=2.0, tool="tally:mark", success=True, duration_ms=1.0)
    journal = [append(1, start(1, 1)), append(2, ended, start(2, 2))]
    assert [(call.call, call.end) for call in calls_of(journal)] == [
        ('tally:mark {"n": 1}', "ok"),
        ('tally:mark {"n": 2}', "open"),
    ]


def test_the_calls_that_tools_logged_are_counted_by_run() -> None:
    line = '{"tool": "tally:mark", "args": {"run": "r", "n": 1}}\n'
    assert made_calls(line * 2) == {"r": Counter({MARK: 2})}
