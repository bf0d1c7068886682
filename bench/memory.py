"""Memory and processor time of everything below a running `pml up`, by process.

Memory is PSS: a page that processes share is divided among them, so that the sum is what the stack
takes. `uv run python bench/memory.py [HOME]`
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import psutil

from pml_local.folder import default_home
from pml_local.state import read_state

_MIB = 2**20
_WIDTH = 90


def processes_of(supervisor: int) -> list[psutil.Process]:
    """Return a supervisor and everything below it."""
    parent = psutil.Process(supervisor)
    return [parent, *parent.children(recursive=True)]


def pss_mib(process: psutil.Process) -> float:
    """Return a process's memory in MiB; 0 for one that has ended."""
    try:
        return process.memory_full_info().pss / _MIB
    except psutil.NoSuchProcess:
        return 0.0


def processor_s(process: psutil.Process) -> float:
    """Return the processor time of a process and of its children that have ended."""
    try:
        return sum(process.cpu_times()[:4])
    except psutil.NoSuchProcess:
        return 0.0


def table(processes: Sequence[psutil.Process]) -> str:
    """Draw the processes by size; Postgres' are one line."""
    rows = [(pss_mib(each), processor_s(each), _title(each)) for each in processes]
    database = [row for row in rows if row[2].startswith("postgres: ") or "/postgres -D " in row[2]]
    others = [row for row in rows if row not in database]
    sums = sum(row[0] for row in database), sum(row[1] for row in database)
    lines = sorted([*others, (*sums, f"postgres, {len(database)} processes")], reverse=True)
    total = sum(row[0] for row in rows), sum(row[1] for row in rows)
    return "\n".join(
        f"{memory:8.1f} MiB {used:8.2f} s  {title[:_WIDTH]}"
        for memory, used, title in (*lines, (*total, "in all"))
    )


def _title(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline()).strip()
    except psutil.NoSuchProcess:
        return "(ended)"


def main(home: Path) -> None:
    """Print the table of the stack on a data folder."""
    state = read_state(home)
    if state is None:
        sys.exit(f"no stack runs on {home}")
    print(table(processes_of(state.pid)))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else default_home())
