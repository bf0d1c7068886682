"""Replaces itself with a program that dies with the process that started it.

Run as a script, by path, before any package is importable:
`python -I -S parent_death.py <parent pid> <signal> <uid> <gid> <program> <argument>...`

On Linux the kernel sends <signal> to the program when the thread that started it ends
(PR_SET_PDEATHSIG), so a supervisor killed with SIGKILL leaves no processes behind. A change of user
clears that setting, so it is set afterwards; and the parent may already be gone, so that is checked
last. A uid of -1 keeps the user. Without prctl (macOS) the program starts without this tie.
"""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1
ORPHANED, NOT_STARTED = 125, 127


def main(parent: int, death_signal: int, uid: int, gid: int, argv: list[str]) -> int:
    """Replace this process; returns an exit code only on failure."""
    if uid >= 0:
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, death_signal)
        if os.getppid() != parent:
            return ORPHANED
    if set(os.environ) == {"LC_CTYPE"}:  # Python's own, in an environment that was empty
        os.environ.clear()
    try:
        os.execv(argv[0], argv)  # noqa: S606 - replacing this process is the purpose
    except OSError as error:
        sys.stderr.write(f"cannot run {argv[0]}: {error}\n")
    return NOT_STARTED


if __name__ == "__main__":
    parent, death_signal, uid, gid = (int(argument) for argument in sys.argv[1:5])
    sys.exit(main(parent, death_signal, uid, gid, sys.argv[5:]))
