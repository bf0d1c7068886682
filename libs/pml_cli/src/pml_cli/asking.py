"""Questions to a person at a terminal."""

import sys

from pml_cli.errors import CommandError


def confirm(question: str) -> bool:
    """Ask on stderr until the answer is yes or no, which is the default. Raises CommandError at
    the end of input."""
    while True:
        sys.stderr.write(f"{question} [y/N]: ")
        sys.stderr.flush()
        line = sys.stdin.readline()
        answer = line.strip().lower()
        if not line:
            raise CommandError("aborted")
        if answer in ("y", "yes"):
            return True
        if answer in ("", "n", "no"):
            return False
        sys.stderr.write("Error: invalid input\n")
