"""`python -m tests.crashes [--all]`: the crash suite by itself; exit code 1 unless all is well."""

import argparse
import asyncio
import sys
from time import monotonic

from libs.pml_local.tests.support.harness import reachable_folder
from tests.crashes.crash_stack import ground
from tests.crashes.suite import Report, crash_suite


def say(line: str) -> None:
    """To whoever waits."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def run(*, every: bool) -> Report:
    """On a stack of its own, which is gone in the end."""
    with reachable_folder() as home:
        async with ground(home) as ready:
            return await crash_suite(ready, every=every, say=say)


def main() -> None:
    """Print what came of it."""
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
