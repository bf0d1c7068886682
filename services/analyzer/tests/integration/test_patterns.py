"""Code → executed path: every pattern, as written and instrumented, run in Deno."""

import re

import pytest

from services.analyzer.tests.generated.trial import tried
from services.analyzer.tests.patterns import Pattern, patterns, ran, understood
from services.analyzer.tests.support.recorder import run

pytestmark = pytest.mark.integration

_BINDINGS = re.compile(r"(?:const (?:params|input|\{ [\w, ]+ \}) = args; )*")


def test_patterns_take_the_path_that_the_table_says() -> None:
    table = patterns()
    outcomes = run([understood(pattern.code).instrumented for pattern in table])
    taken = {p.id: ran(outcome) for p, outcome in zip(table, outcomes, strict=True)}
    told = {p.id: {"path": p.facts["path"]} if "path" in p.facts else {} for p in table}
    assert taken == told


def test_patterns_run_as_written_and_their_paths_are_ways_through_their_structures() -> None:
    judged = [p for p in patterns() if "apart" not in p.facts]
    programs = [_begun(p) for p in judged if not understood(p.code).dynamic_calls]
    wrong = {trial.code: trial.complaint for trial in tried(programs, run) if trial.complaint}
    assert not wrong


def _begun(pattern: Pattern) -> str:
    """Return the pattern after a call, where every run begins, with its parameters bound by
    hand."""
    bindings = _BINDINGS.match(understood(pattern.code).instrumented)
    assert bindings is not None
    return f"{bindings[0]}await mcp.git.status(); {{ {pattern.code}\n}}"
