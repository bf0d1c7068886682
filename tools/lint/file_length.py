"""Warn of source files over 300 lines, fail on those over 400; `long on purpose: <why>` near the
top exempts a file."""

import subprocess
import sys
from pathlib import Path

LONG, LIMIT = 300, 400
ENDINGS = (".py", ".ts", ".sql")
HEAD = 10


def length(path: Path) -> int:
    """Lines of one file; 0 if it is exempt."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return 0 if any("long on purpose:" in line for line in lines[:HEAD]) else len(lines)


def too_long(path: Path) -> str | None:
    """Return the complaint about one file, or None."""
    lines = length(path)
    if lines <= LIMIT:
        return None
    return f"{path}: {lines} lines, more than {LIMIT}; split it, or say why not at its top"


def main() -> int:
    """Check every tracked or untracked file."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    )
    paths = [Path(line) for line in listed.stdout.splitlines() if line.endswith(ENDINGS)]
    present = [path for path in paths if path.exists()]
    for path in present:
        if LONG < length(path) <= LIMIT:
            print(f"warning: {path}: {length(path)} lines, more than {LONG}")
    complaints = [found for path in present if (found := too_long(path))]
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
