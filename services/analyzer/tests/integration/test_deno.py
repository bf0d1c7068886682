"""The instrumented programs of the analyzer's tests load like in the sandbox."""

import pytest

from pml_analysis.analysis import Analysis, analyze
from pml_common.contracts.decision import Policy
from services.analyzer.tests.patterns import patterns
from services.analyzer.tests.support.programs import SOURCES_EXAMPLE, TOOLS
from services.analyzer.tests.support.recorder import run
from services.analyzer.tests.unit.test_calls import DYNAMIC, RESOLVED
from services.analyzer.tests.unit.test_forbidden import ALLOWED
from services.analyzer.tests.unit.test_instrument import CASES as INSTRUMENTED
from services.analyzer.tests.unit.test_normal_form import DIFFERENT, EQUAL
from services.analyzer.tests.unit.test_parameters import ALL as PARAMETERS

pytestmark = pytest.mark.integration

WRITTEN = [
    SOURCES_EXAMPLE,
    *(pattern.code for pattern in patterns()),
    *RESOLVED.values(),
    *(code for code, _ in DYNAMIC.values()),
    *ALLOWED.values(),
    *(code for code, _ in INSTRUMENTED.values()),
    *(code for pair in (*EQUAL.values(), *DIFFERENT.values()) for code in pair),
    *(code for code, *_ in PARAMETERS.values()),
]


def test_what_the_author_wrote_loads_when_instrumented() -> None:
    instrumented: list[str] = []
    for code, outcome in zip(WRITTEN, run(WRITTEN), strict=True):
        analysis = analyze(code, tools=TOOLS, policy=Policy())
        if not isinstance(outcome, str) and isinstance(analysis, Analysis):
            instrumented.append(analysis.instrumented)
    assert len(instrumented) > 250
    assert [outcome for outcome in run(instrumented) if isinstance(outcome, str)] == []
