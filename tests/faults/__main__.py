"""`python -m tests.faults`: runs the fault campaign; exit code 1 if an invariant is violated."""

import argparse
import asyncio
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

from libs.pml_local.tests.support.harness import reachable_folder
from tests.faults.campaign import Outcome, campaign
from tests.faults.injections import drawn, every_fault
from tests.faults.report import report_of
from tests.faults.site import site

NO_DISK = "a full disk (needs root, to mount one of its own)"
OTHER_CLOCKS = "clocks but the executor's"


def say(line: str) -> None:
    """Print at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def run(minutes: float, seed: int, without: Sequence[str], logs: Path | None) -> Outcome:
    """Run the campaign on a temporary stack."""
    with reachable_folder() as home:
        async with site(home, disk="disk" not in without) as ready:
            possible = every_fault(disk=ready.disk is not None)
            faults = [fault for fault in possible if not {fault.kind, fault.name} & set(without)]
            left_out = [OTHER_CLOCKS, *without]
            if ready.disk is None and "disk" not in without:
                left_out.append(NO_DISK)
            outcome = await campaign(
                ready,
                drawn(faults, Random(seed)),  # noqa: S311 - to be repeated
                seed=seed,
                seconds=minutes * 60,
                left_out=tuple(left_out),
                say=say,
            )
            if logs is not None:
                shutil.copytree(ready.stack.home / "logs", logs, dirs_exist_ok=True)
            return outcome


def main() -> None:
    """Run the campaign and write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--minutes", type=float, default=30.0, help="duration of the faults in minutes"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=Path, help="file for the report, besides the output")
    parser.add_argument("--logs", type=Path, help="folder for the logs of all parts")
    parser.add_argument(
        "--without",
        action="append",
        default=list[str](),
        help="skip a kind of fault (disk) or one fault ('kill nats'); may be repeated",
    )
    options = parser.parse_args()
    outcome = asyncio.run(run(options.minutes, options.seed, options.without, options.logs))
    report = report_of(outcome)
    if options.report is not None:
        options.report.parent.mkdir(parents=True, exist_ok=True)
        options.report.write_text(report, encoding="utf-8")
    say(report)
    sys.exit(1 if outcome.violations else 0)


if __name__ == "__main__":
    main()
