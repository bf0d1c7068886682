"""Runs a service with the interpreter that a file names: `python launch.py SERVICE FILE`."""

import os
import sys
from pathlib import Path

if __name__ == "__main__":
    service, file = sys.argv[1:]
    python = Path(file).read_text(encoding="utf-8")
    os.execv(python, (python, "-m", f"pml_{service}"))  # noqa: S606 - keeps the supervised pid
