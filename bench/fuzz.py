"""Fuzzing of the analyzer with nearly valid programs: it must reject or analyse, never crash.

`uv run python bench/fuzz.py [--minutes 1] [--seed 0] [FOLDER...]`: mutates the programs of the
analyzer's own tests and, of each folder, statements in its .ts files. Prints the outcomes and every
counterexample, minimised.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from time import monotonic, process_time
from traceback import print_exc

from hypothesis import HealthCheck, given, seed, settings

sys.path.insert(0, str(Path(__file__).parent.parent))  # when run as a script

from pml_analysis.analysis import Analysis
from services.analyzer.tests.support.fuzzing import check
from services.analyzer.tests.support.mutations import snippets, statements, texts
from services.analyzer.tests.support.rewriting import rewritten

TESTS = Path(__file__).parent.parent / "services/analyzer/tests"
AT_ONCE = 1_000
"""Texts per seed."""

LONGEST_S = 1.0
LONGEST_S_PER_CHARACTER = 20e-6
MOST_FAILURES = 10
SETTINGS = settings(
    max_examples=AT_ONCE,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


class Findings:
    """Results so far."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.slowest = (0.0, "")

    def examine(self, text: str) -> None:
        """Analyse one text. Raises AssertionError on a violation, or when it is slow."""
        began = process_time()
        outcome = check(text)
        took = process_time() - began
        assert took < LONGEST_S + LONGEST_S_PER_CHARACTER * len(text), f"{took:.2f} s"
        self.slowest = max(self.slowest, (took, text))
        self.outcomes["analysed" if isinstance(outcome, Analysis) else outcome.kind] += 1


def programs(folders: Iterable[str]) -> list[str]:
    """Programs to mutate."""
    found = snippets(TESTS)
    for folder in folders:
        for path in sorted(Path(folder).rglob("*.ts")):
            found += statements(rewritten(path.read_bytes().decode("utf-8", "replace")))
    return list(dict.fromkeys(found))


def main(minutes: float, first_seed: int, folders: Iterable[str]) -> int:
    """Return exit code 0 when nothing failed."""
    whole = programs(folders)
    drawn = texts(whole)
    findings = Findings()
    number, until, failures = first_seed, monotonic() + minutes * 60, 0
    while monotonic() < until and failures < MOST_FAILURES:
        try:
            seed(number)(SETTINGS(given(drawn)(findings.examine)))()
        except Exception:  # noqa: BLE001 - any exception is a finding
            failures += 1
            print_exc()
        number += 1
    took, text = findings.slowest
    print(f"{len(whole)} programs, seeds {first_seed} to {number - 1}, {failures} with a failure")
    print(f"{sum(findings.outcomes.values())} texts: {dict(findings.outcomes)}")
    print(f"the slowest took {took:.3f} s of CPU time, its checks too: {text[:200]!r}")
    return 1 if failures else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("folders", nargs="*")
    given_ = parser.parse_args()
    sys.exit(main(given_.minutes, given_.seed, given_.folders))
