"""Analyzer, executor and sandbox limit the nesting of capabilities alike."""

import re
from pathlib import Path

from pml_analysis.decision import capabilities as analyzer
from pml_executor.domain import capabilities as executor

RUNTIME = Path(__file__).parents[2] / "services/executor/src/pml_executor/runtime"
WORKER = RUNTIME / "worker/capabilities.ts"


def test_analyzer_executor_and_sandbox_allow_the_same_depth() -> None:
    (deepest,) = re.findall(r"DEEPEST = (\d+);", WORKER.read_text(encoding="utf-8"))
    assert int(deepest) == executor.DEEPEST == analyzer.MAX_DEPTH
