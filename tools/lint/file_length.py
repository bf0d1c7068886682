"""Fail on source files over 300 lines; `long on purpose: <why>` near the top lets one be."""

import subprocess
import sys
from pathlib import Path

LIMIT = 300
ENDINGS = (".py", ".ts", ".sql")
HEAD = 10


def too_long(path: Path) -> str | None:
    """The complaint about one file, or None."""
    lines = path.read_text(encoding="utf-8").splitlines()
    if len(lines) <= LIMIT or any("long on purpose:" in line for line in lines[:HEAD]):
        return None
    return f"{path}: {len(lines)} lines, more than {LIMIT}; split it, or say why not at its top"


def main() -> int:
    """Check every file git tracks or would track."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    )
    paths = [Path(line) for line in listed.stdout.splitlines() if line.endswith(ENDINGS)]
    complaints = [found for path in paths if path.exists() and (found := too_long(path))]
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
