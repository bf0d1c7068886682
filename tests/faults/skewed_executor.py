"""The real executor with a wall clock that can be set at run time.

`python tests/faults/skewed_executor.py FILE`: FILE holds the clock's lead in seconds as a double.
Only `time.time` and `time.time_ns` follow it; monotonic clocks are unchanged.
"""

import mmap
import struct
import sys
import time
from pathlib import Path

SKEW = struct.Struct("d")


def set_skew(file: Path, seconds: float) -> None:
    """Set every clock that reads this file."""
    with file.open("r+b") as opened:
        opened.write(SKEW.pack(seconds))


def make_skew(file: Path) -> None:
    """Create a file for clocks without skew."""
    file.write_bytes(SKEW.pack(0.0))


def skew_clock(file: Path) -> None:
    """Make this process's wall clock follow the file."""
    with file.open("rb") as opened:
        skew = mmap.mmap(opened.fileno(), SKEW.size, access=mmap.ACCESS_READ)
    right, right_ns = time.time, time.time_ns

    def ahead() -> float:
        seconds: float = SKEW.unpack_from(skew)[0]
        return seconds

    time.time = lambda: right() + ahead()
    time.time_ns = lambda: right_ns() + int(ahead() * 1e9)


if __name__ == "__main__":
    skew_clock(Path(sys.argv[1]))
    from pml_common.service import run_service
    from pml_executor.app import serve
    from pml_executor.settings import ExecutorSettings

    run_service("executor", ExecutorSettings(), serve)
