"""Processor time of the `pml` command, as multiples of `python -c pass`.

`uv run python bench/command.py [--runs N]` starts an embedded stack, runs each command and the
yardstick in turn, and prints the median, the lowest and the highest ratio of a pair. Compiled files
are written first: run it without PYTHONDONTWRITEBYTECODE.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from pml_local.composition import StackOptions
from pml_local.stack import embedded_stack

RUNS = 40
PASS = (sys.executable, "-c", "pass")
COMMANDS: Mapping[str, int] = {"--help": 5, "status": 8, "status --json": 8, "approvals list": 8}
"""By command line, the most that it should cost."""


async def main() -> None:
    """Measure every command against one stack."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    runs: int = parser.parse_args().runs
    with tempfile.TemporaryDirectory(prefix="pml-bench-", ignore_cleanup_errors=True) as folder:
        home = Path(folder) / "data"
        async with embedded_stack(StackOptions(home=home)) as stack:
            env = {**os.environ, "PML_HOME": str(home), "PML_URL": stack.url}
            for line, most in COMMANDS.items():
                found = await asyncio.to_thread(ratios, line.split(), env, runs)
                print(
                    f"pml {line}: {median(found):.2f} times `python -c pass` "
                    f"({min(found):.2f} to {max(found):.2f} of {runs}; goal {most})"
                )


def ratios(words: Sequence[str], env: Mapping[str, str], runs: int) -> list[float]:
    """Run a command and the yardstick in turn."""
    command = (str(Path(sys.executable).with_name("pml")), *words)
    for warmed in (command, PASS):
        cpu_seconds(warmed, env)
    return [cpu_seconds(command, env) / cpu_seconds(PASS, env) for _ in range(runs)]


def cpu_seconds(argv: Sequence[str], env: Mapping[str, str]) -> float:
    """User and system time of a process that succeeds."""
    process = subprocess.Popen(argv, env=env, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, f"{argv} ended with {process.returncode}"
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    asyncio.run(main())
