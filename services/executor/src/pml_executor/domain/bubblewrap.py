"""Command line of bubblewrap: a root with only Deno, its libraries and our runtime, in its own
namespaces."""

import re
import struct
from collections.abc import Iterable

DENO = "/sandbox/deno"
RUNTIME = "/sandbox/runtime"
"""Paths inside the sandbox, which reveal nothing of the machine's folders."""

_ENCLOSED = (
    "--unshare-all",
    "--unshare-user",
    "--die-with-parent",
    "--new-session",
    "--as-pid-1",
    "--cap-drop",
    "ALL",
    "--uid",
    "65534",
    "--gid",
    "65534",
    "--hostname",
    "sandbox",
)
_INTERPRETER = 3  # PT_INTERP
_LIBRARY = re.compile(r"(/\S+) \(0x", re.MULTILINE)


def loader_of(program: memoryview) -> str | None:
    """Return the path of the loader that an ELF program (64 bits, little-endian) names; None for a
    static program."""
    (table,) = struct.unpack_from("<Q", program, 32)
    size, count = struct.unpack_from("<HH", program, 54)
    for at in range(table, table + size * count, size):
        (kind,) = struct.unpack_from("<I", program, at)
        if kind == _INTERPRETER:
            (offset,) = struct.unpack_from("<Q", program, at + 8)
            (length,) = struct.unpack_from("<Q", program, at + 32)
            return bytes(program[offset : offset + length]).rstrip(b"\0").decode()
    return None


def libraries(listing: str) -> tuple[str, ...]:
    """Return the files that a loader lists for a program, itself included."""
    return tuple(_LIBRARY.findall(listing))


def bubblewrap(bwrap: str, deno: str, runtime: str, shared: Iterable[str]) -> tuple[str, ...]:
    """Return the command to which `descriptors` and then the inner command are appended.

    Deno asks glibc where its stack is, which reads /proc/self/maps: the /proc is that of its own
    process namespace.
    """
    binds = ((deno, DENO), (runtime, RUNTIME), *((path, path) for path in shared))
    return (
        bwrap,
        *_ENCLOSED,
        *(word for source, target in binds for word in ("--ro-bind", source, target)),
        *("--dev-bind", "/dev/null", "/dev/null"),
        *("--proc", "/proc"),
        *("--remount-ro", "/"),
        *("--chdir", "/"),
    )


def descriptors(seccomp: int, info: int) -> tuple[str, ...]:
    """Return the options for the descriptors from which bwrap reads the filter, and to which it
    writes its child's process id."""
    return ("--seccomp", str(seccomp), "--info-fd", str(info), "--")
