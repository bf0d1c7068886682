"""The verdict on a pytest session from its report log (pytest-reportlog): passed, failed, or to be
repeated. Pure: it takes lines and exit statuses."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

import pytest

MOST_AGAIN = 10
"""More failures than this have a common cause: a second try would only cost time."""
PROMISE = "promise"
"""Marker of tests that get no second try."""
_PHASES = frozenset({"setup", "call", "teardown"})

Record = Mapping[str, object]


@dataclass(frozen=True)
class Failure:
    """The first failure of one test."""

    test: str
    reason: str
    promise: bool
    crashed: bool
    """The process that ran it died."""


@dataclass
class Outcome:
    """Results of one session."""

    failures: dict[str, Failure] = field(default_factory=dict[str, Failure])
    passed: set[str] = field(default_factory=set[str])
    uncollected: list[str] = field(default_factory=list[str])
    """Files and folders whose collection failed."""


@dataclass(frozen=True)
class Verdict:
    """The state after the first session; `again` names the tests that a second one decides."""

    state: Literal["passed", "failed", "again"]
    again: tuple[str, ...] = ()
    why: str = ""


def outcome_of(lines: Iterable[str]) -> Outcome:
    """Read the report log of one session."""
    found = Outcome()
    for line in lines:
        record = cast(Record, json.loads(line))
        test, result = str(record.get("nodeid", "")), record.get("outcome")
        if result == "failed" and record["$report_type"] == "CollectReport":
            found.uncollected.append(test)
        elif result == "failed":
            found.failures.setdefault(test, _failure(test, record))
        elif result == "passed" and record.get("when") == "call":
            found.passed.add(test)
    return found


def _failure(test: str, record: Record) -> Failure:
    keywords = cast(Mapping[str, object], record.get("keywords") or {})
    crashed = record.get("when") not in _PHASES
    return Failure(test, _reason(record.get("longrepr")), PROMISE in keywords, crashed)


def _reason(longrepr: object) -> str:
    """Place and first line of the error."""
    if not isinstance(longrepr, Mapping):
        return str(longrepr).strip().rpartition("\n")[2]
    crash = cast(Mapping[str, object], cast(Record, longrepr).get("reprcrash") or {})
    message = str(crash.get("message")).strip().partition("\n")[0]
    return f"{crash.get('path')}:{crash.get('lineno')}: {message}"


def first_verdict(status: int, outcome: Outcome) -> Verdict:
    """Decide on the first session: only failures of a few ordinary tests are repeated."""
    failures = outcome.failures
    if status == pytest.ExitCode.OK and not failures and not outcome.uncollected:
        return Verdict("passed")
    if outcome.uncollected:
        return Verdict("failed", why="not collected: " + ", ".join(outcome.uncollected))
    if status != pytest.ExitCode.TESTS_FAILED or not failures:
        return Verdict("failed", why=f"pytest ended with status {status}")
    if crashed := [each.test for each in failures.values() if each.crashed]:
        return Verdict("failed", why="the process died in " + ", ".join(crashed))
    if kept := [each.test for each in failures.values() if each.promise]:
        return Verdict("failed", why="no second try for promises: " + ", ".join(kept))
    if len(failures) > MOST_AGAIN:
        return Verdict("failed", why=f"{len(failures)} tests failed, more than {MOST_AGAIN}")
    return Verdict("again", tuple(failures))


def flaky(again: tuple[str, ...], status: int, second: Outcome) -> bool:
    """Tell whether every repeated test passed this time."""
    clean = status == pytest.ExitCode.OK and not second.failures and not second.uncollected
    return clean and set(again) <= second.passed
