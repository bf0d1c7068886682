"""`python -m tests.upgrade`: an upgrade, and the way back, under load; exit code 1 where a phase
breaks."""

import argparse
import asyncio
import shutil
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from libs.pml_local.tests.support.harness import reachable_folder
from tests.upgrade.mixed_stack import mixed_stack
from tests.upgrade.older_folder import older_folder
from tests.upgrade.phases import Result, all_phases, go_through, report_of
from tests.upgrade.revisions import FIRST, UnknownRevision, chosen, python_of, runs_beside


def say(line: str) -> None:
    """Print at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def run(
    folder_of: Path, beside: Path | None, limit_s: float, logs: Path | None
) -> Sequence[Result]:
    """Start this revision on a folder of an old one, then go through all mixes with the services of
    one that may run `beside`, on another stack. Raises TimeoutError."""
    new = Path(sys.executable)
    async with asyncio.timeout(limit_s):
        with _logged(logs, "folder") as folder:
            results = await older_folder(folder, {"old": folder_of, "new": new}, say)
        if beside is None:
            say("its services do not run beside today's: no mixes")
            return results
        with _logged(logs, "mixes") as folder:
            async with mixed_stack(folder, {"old": beside, "new": new}) as site:
                return [*results, *await go_through(site, all_phases(), say)]


@contextmanager
def _logged(logs: Path | None, part: str) -> Generator[Path]:
    """A folder for a stack, whose logs are kept in `logs`."""
    with reachable_folder() as folder:
        try:
            yield folder
        finally:
            if logs is not None:
                shutil.copytree(folder / "data" / "logs", logs / part, dirs_exist_ok=True)
                for log in folder.glob("*.log"):
                    shutil.copy(log, logs / part)


def main() -> None:
    """Make the old revision ready, go through the phases, write the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--from", dest="base", help="tag or commit; default: the last tag")
    parser.add_argument("--minutes", type=float, default=12.0, help="limit of the whole")
    parser.add_argument("--report", type=Path, help="file for the report, besides the output")
    parser.add_argument("--logs", type=Path, help="folder for the logs of all parts")
    wanted = parser.parse_args()
    try:
        base, commit = chosen(wanted.base)
        first = commit if wanted.base else chosen(FIRST)[1]
    except UnknownRevision as error:
        parser.error(str(error))
    say(f"upgrade from {base} ({commit[:12]}), on a folder of {first[:12]}")
    beside = python_of(commit) if runs_beside(commit) else None
    results = asyncio.run(run(python_of(first), beside, wanted.minutes * 60, wanted.logs))
    report = report_of(results, f"{base} ({commit[:12]})")
    say(report)
    if wanted.report is not None:
        wanted.report.write_text(report + "\n", encoding="utf-8")
    raise SystemExit(0 if all(each.works for each in results) else 1)


if __name__ == "__main__":
    main()
