"""Files of this project's own sandbox, made into programs; `bench/corpus.py` takes any others."""

from pathlib import Path

import pytest

from pml_analysis.analysis import Analysis, Rejection, analyze
from pml_common.contracts.decision import Policy
from services.analyzer.tests.support.invariants import faults
from services.analyzer.tests.support.rewriting import rewritten
from services.analyzer.tests.support.tool_calls import (
    CATALOGUE,
    KNOWN,
    places_of_calls,
    places_of_nodes,
)

RUNTIME = Path(__file__).parents[4] / "services/executor/src/pml_executor/runtime"
FILES = sorted(RUNTIME.rglob("*.ts"))


def outcome_of(code: str) -> Analysis | Rejection:
    return analyze(code, tools=CATALOGUE, policy=Policy(), capabilities=KNOWN)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_call_that_a_plain_query_finds_is_a_node_or_dynamic(path: Path) -> None:
    code = rewritten(path.read_text())
    outcome = outcome_of(code)
    assert not faults(code, outcome)
    if isinstance(outcome, Analysis):
        called = places_of_calls(code)
        nodes, dynamic = places_of_nodes(outcome)
        assert nodes <= called <= nodes | dynamic


def test_nearly_all_files_are_analysed_and_have_calls() -> None:
    texts = [rewritten(path.read_text()) for path in FILES]
    analysed = [code for code in texts if isinstance(outcome_of(code), Analysis)]
    assert len(analysed) > 0.9 * len(FILES)
    assert len([code for code in analysed if places_of_calls(code)]) > 0.9 * len(FILES)


def test_a_file_is_made_the_same_program_every_time() -> None:
    text = FILES[0].read_text()
    assert rewritten(text) == rewritten(text)
