"""Instrumented programs in Deno, loaded as the sandbox loads them: all in one process."""

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from pml_analyzer.domain.analysis import Analysis, analyze
from pml_common.contracts.decision import Policy
from services.analyzer.tests.generated import PROGRAMS, render
from services.analyzer.tests.programs import SOURCES_EXAMPLE, TOOLS, analysed
from services.analyzer.tests.unit.test_calls import DYNAMIC, RESOLVED
from services.analyzer.tests.unit.test_forbidden import ALLOWED
from services.analyzer.tests.unit.test_instrument import CASES as INSTRUMENTED
from services.analyzer.tests.unit.test_normal_form import DIFFERENT, EQUAL
from services.analyzer.tests.unit.test_parameters import CASES as PARAMETERS
from services.analyzer.tests.unit.test_structure import CASES as STRUCTURES

pytestmark = pytest.mark.integration

DENO = Path(sys.executable).with_name("deno")
RECORDER = Path(__file__).with_name("recorder.js")
GENERATED = 300
WRITTEN = [
    SOURCES_EXAMPLE,
    *(code for code, *_ in STRUCTURES.values()),
    *RESOLVED.values(),
    *(code for code, _ in DYNAMIC.values()),
    *ALLOWED.values(),
    *(code for code, _ in INSTRUMENTED.values()),
    *(code for pair in (*EQUAL.values(), *DIFFERENT.values()) for code in pair),
    *(code for code, *_ in PARAMETERS.values()),
]


def _run(pairs: list[tuple[str, str]]) -> list[list[Any]]:
    """Both programs of each pair, run; or the first as it is and why it did not load."""
    done = subprocess.run(
        [DENO, "run", "--no-prompt", "--no-remote", RECORDER],
        input=json.dumps(pairs),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_what_the_author_wrote_loads_when_instrumented() -> None:
    ran = _run([(code, "") for code in WRITTEN])
    instrumented: list[tuple[str, str]] = []
    for code, (outcome, _) in zip(WRITTEN, ran, strict=True):
        analysis = analyze(code, tools=TOOLS, policy=Policy())
        if outcome != code and isinstance(analysis, Analysis):
            instrumented.append((analysis.instrumented, ""))
    assert len(instrumented) > 250
    assert [why for outcome, why in _run(instrumented) if isinstance(outcome, str)] == []


def _generated() -> list[str]:
    programs: list[str] = []

    @given(PROGRAMS)
    @settings(
        max_examples=GENERATED,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    def collect(program: str) -> None:
        programs.append(render(program))

    collect()
    return list(dict.fromkeys(programs))


def test_instrumentation_changes_no_run_and_every_run_is_a_way_through_the_structure() -> None:
    programs = _generated()
    analyses = [analysed(code) for code in programs]
    # The parameter that the generator uses is bound by hand where nothing binds it.
    pairs = [
        (f"const free = args.free; {code}", analysis.instrumented)
        for code, analysis in zip(programs, analyses, strict=True)
    ]
    for (code, _), analysis, (plain, marked) in zip(pairs, analyses, _run(pairs), strict=True):
        assert not isinstance(plain, str), (code, marked)
        assert (plain["end"], plain["calls"]) == (marked["end"], marked["calls"]), code
        called = [node.id for node in analysis.structure.nodes if node.id.startswith("n")]
        path: list[tuple[str, str | None]] = [tuple(step) for step in marked["path"]]
        assert len(plain["calls"]) == sum(node in called for node, _ in path)
        edges = {(e.from_, e.outcome, e.to) for e in analysis.structure.edges}
        steps = [(node, outcome, after) for (node, outcome), (after, _) in pairwise(path)]
        # Rounds of a loop after the first have no edges of their own.
        assert "for (" in code or set(steps) <= edges, (code, path)
