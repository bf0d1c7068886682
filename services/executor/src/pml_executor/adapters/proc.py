"""Files of /proc, read at one go: they are looked at many times in each run, and path objects and
buffered files cost several times as much."""

import os

_MOST_BYTES = 4096


def read_proc(path: str) -> str:
    """The text of a small file. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _MOST_BYTES).decode(errors="replace")
    finally:
        os.close(descriptor)
