"""Controllable child processes, for tests of the pools that hold them."""

import os
import sys
from pathlib import Path
from typing import Final

from pml_analyzer.adapters.child_process import ChildCommand

_CHILD: Final = """
import os, sys
def write(body):
    sys.stdout.buffer.write(len(body).to_bytes(4, "big") + body)
    sys.stdout.buffer.flush()
write(b"")
while head := sys.stdin.buffer.read(4):
    what, _, given = sys.stdin.buffer.read(int.from_bytes(head, "big")).partition(b" ")
    if what == b"wait":
        open(given, "rb").read()
    elif what == b"spin":
        while True:
            pass
    elif what == b"die":
        os._exit(1)
    elif what == b"lie":
        sys.stdout.buffer.write(b"\\xff" * 4)
    write(b"%d" % os.getpid())
"""

CHILD: Final = ChildCommand((sys.executable, "-I", "-S", "-c", _CHILD))
"""Answers with its id: at once, at a gate (`wait PATH`), never (`spin`), or not in words (`lie`);
`die` ends it."""


class Gate:
    """A named pipe, at which children wait until it is opened."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "gate"
        os.mkfifo(self._path)

    @property
    def request(self) -> bytes:
        """Build the request that makes a child wait here."""
        return b"wait " + os.fsencode(self._path)

    def open(self) -> None:
        """Release the one that waits."""
        with self._path.open("wb"):
            pass
