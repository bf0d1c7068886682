"""Run pytest, and believe a failure when it repeats: `python -m tools.gate.tests -- [options]`.

Tests that fail are run once more after the session, without others beside them, in a new process.
If they pass then, the run passes and names them FLAKY with their first failure, here and in
`.cache/flaky.txt`, which the gate shows at its end. Tests with the marker `promise`, errors of
collection, dead processes and more than a few failures get no second try.

pytest-rerunfailures repeats a test in place: on the same loaded machine, with the same servers and
fixtures of the session, which are often what made it fail.
"""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.gate.verdict import Failure, Outcome, first_verdict, flaky, outcome_of

ROOT = Path(__file__).parents[2]
FLAKY_LOG = ROOT / ".cache/flaky.txt"
_ALONE = ("-q", "-n", "0")
_SAME_COVERAGE = ("--cov", "--cov-append", "--cov-report=", "--cov-fail-under=0")


def session(options: Sequence[str], folder: Path = ROOT) -> tuple[int, Outcome]:
    """Run pytest; return its exit status and what its tests did."""
    with tempfile.TemporaryDirectory(prefix="pml-gate-") as place:
        log = Path(place) / "reports.jsonl"
        kept = [f"--report-log={log}", "--report-log-exclude-logs-on-passed-tests"]
        ended = subprocess.run([sys.executable, "-m", "pytest", *options, *kept], cwd=folder)
        with log.open(encoding="utf-8") as lines:
            return ended.returncode, outcome_of(lines)


def again(tests: Sequence[str], options: Sequence[str], folder: Path = ROOT) -> tuple[int, Outcome]:
    """Run these tests alone, adding to the coverage of the first session if that was measured."""
    covered = _SAME_COVERAGE if any(each.startswith("--cov") for each in options) else ()
    return session([*_ALONE, *covered, *tests], folder)


def summary(failures: Sequence[Failure]) -> str:
    """Lines on tests that failed at first and passed alone."""
    return "".join(f"FLAKY {each.test}\n  failed first: {each.reason}\n" for each in failures)


def run(options: Sequence[str], folder: Path = ROOT, log: Path = FLAKY_LOG) -> int:
    """Run the tests and return the exit status: 0 also where all failures were flaky."""
    status, first = session(options, folder)
    verdict = first_verdict(status, first)
    if verdict.state == "passed":
        return 0
    if verdict.state == "failed":
        print(f"\nFAILED: {verdict.why}")
        return status or 1
    print(f"\n{len(verdict.again)} failed, once more alone:", flush=True)
    status, second = again(verdict.again, options, folder)
    if not flaky(verdict.again, status, second):
        repeated = [test for test in verdict.again if test not in second.passed]
        print("\nFAILED, twice: " + ", ".join(repeated or verdict.again))
        return status or 1
    told = summary([first.failures[test] for test in verdict.again])
    log.parent.mkdir(exist_ok=True)
    with log.open("a", encoding="utf-8") as lines:
        lines.write(told)
    print(f"\n{told}", end="")
    return 0


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(run(given[1:] if given[:1] == ["--"] else given))
