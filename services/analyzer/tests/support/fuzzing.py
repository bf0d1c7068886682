"""Analysis of one arbitrary text, and the invariants of every outcome."""

from time import process_time

from pml_analysis.analysis import Analysis, Rejection, analyze
from pml_common.contracts.decision import Policy
from services.analyzer.tests.support.invariants import faults
from services.analyzer.tests.support.library import KNOWN
from services.analyzer.tests.support.programs import TOOLS

LONGEST_S = 1.0
LONGEST_S_PER_CHARACTER = 20e-6


def check(text: str) -> Analysis | Rejection:
    """Return the outcome of a text. Raises AssertionError when an invariant fails, or it is
    slow."""
    began = process_time()
    outcome = analyze(text, tools=TOOLS, policy=Policy(), capabilities=KNOWN)
    took = process_time() - began
    assert not (wrong := faults(text, outcome)), wrong
    assert took < LONGEST_S + LONGEST_S_PER_CHARACTER * len(text), f"{took:.2f} s"
    return outcome
