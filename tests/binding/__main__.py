"""`python -m tests.binding [--lies] [--only TEXT]`: programs that try to pass calls that were not
shown; exit code 1 on any failure."""

import argparse
import asyncio
import sys
from collections.abc import Callable, Sequence
from time import monotonic

from libs.pml_local.tests.support.harness import reachable_folder
from tests.binding.attacks import Attack, attacks
from tests.binding.stage import stage
from tests.binding.suite import Report, as_it_is, suite, with_lies
from tests.binding.trial import Trial


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def run(trials: Sequence[Trial], *, lying: bool) -> Report:
    """Run the trials on a temporary stack."""
    with reachable_folder() as home:
        async with stage(home, lying=lying) as ready:
            return await suite(ready, trials, say)


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="programs whose name holds this")
    parser.add_argument("--truth", action="store_true", help="no lies")
    parser.add_argument("--lies", action="store_true", help="nothing but lies")
    asked = parser.parse_args()
    chosen = [attack for attack in attacks() if asked.only in attack.name]
    parts: list[tuple[str, bool, Callable[[Sequence[Attack]], list[Trial]]]] = [
        ("the analysis as it is", False, as_it_is),
        ("an analysis that lies", True, with_lies),
    ]
    failed = False
    for name, lying, made in parts:
        if (asked.truth and lying) or (asked.lies and not lying):
            continue
        began, trials = monotonic(), made(chosen)
        say(f"{name}: {len(chosen)} programs, {len(trials)} runs")
        report = asyncio.run(run(trials, lying=lying))
        *details, sum_up = report.lines()
        for line in (*details[len(report.failures) :], f"took {monotonic() - began:.0f} s", sum_up):
            say(line)
        failed = failed or bool(report.failures)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
