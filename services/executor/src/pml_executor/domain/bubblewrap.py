"""Command line of bubblewrap: a root with only Deno, its libraries and our runtime, in its own
namespaces."""

import re
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
_LIBRARY = re.compile(r"(/\S+) \(0x", re.MULTILINE)


def libraries(ldd: str) -> tuple[str, ...]:
    """Return the files that `ldd` lists for a program; none for a static one."""
    return tuple(_LIBRARY.findall(ldd))


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
