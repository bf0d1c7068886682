"""The real executor with a shifted clock: FILE holds the current shift in seconds.

`PML_NATS_URL=… PML_SIGNING_KEY=… PML_TRUSTED_KEYS=… python -m tests.faults.turned_executor FILE`
"""

import runpy
import sys
import time
from pathlib import Path


def turn(file: Path) -> None:
    """Shift `time.time` from the machine's clock."""
    true_time = time.time

    def turned() -> float:
        return true_time() + float(file.read_text() or 0)

    time.time = turned


if __name__ == "__main__":
    turn(Path(sys.argv[1]))
    runpy.run_module("pml_executor", run_name="__main__")
