"""Analysis of one arbitrary text, and the invariants of every outcome."""

from pml_analysis.analysis import Analysis, Rejection, analyze
from pml_common.contracts.decision import Policy
from services.analyzer.tests.support.invariants import faults
from services.analyzer.tests.support.library import KNOWN
from services.analyzer.tests.support.programs import TOOLS


def check(text: str) -> Analysis | Rejection:
    """Return the outcome of a text. Raises AssertionError when an invariant fails."""
    outcome = analyze(text, tools=TOOLS, policy=Policy(), capabilities=KNOWN)
    assert not (wrong := faults(text, outcome)), wrong
    return outcome
