"""`python -m tests.crashes [--all]`: runs the crash suite; exit code 1 on any failure."""

import argparse
import asyncio
import sys
from time import monotonic

from libs.pml_local.tests.support.harness import reachable_folder
from tests.crashes.crash_stack import crash_stack
from tests.crashes.suite import Report, crash_suite


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def run(*, every: bool) -> Report:
    """Run the suite on a temporary stack."""
    with reachable_folder() as home:
        async with crash_stack(home) as ready:
            return await crash_suite(ready, every=every, say=say)


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="every point of every program")
    began = monotonic()
    report = asyncio.run(run(every=parser.parse_args().all))
    *details, sum_up = report.lines()
    for line in (*details, f"took {monotonic() - began:.0f} s", sum_up):
        say(line)
    sys.exit(1 if report.failures else 0)


if __name__ == "__main__":
    main()
