"""What a Worker may leave in its process, as the kernel sees it: `terminate()` does not end a busy
one, and whoever has no thread runs no more; what a signal does is the whole process's."""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

_WORKER = "worker-"
_LOOK_S = 0.001
_LONGEST_LOOK_S = 0.01


def can_tell() -> bool:
    """Whether threads can be looked at here."""
    return sys.platform == "linux"


def workers(pid: int) -> frozenset[int]:
    """The ids of the threads that Deno named as a Worker's; none where that cannot be told."""
    found: set[int] = set()
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                if (thread / "comm").read_text(errors="replace").startswith(_WORKER):
                    found.add(int(thread.name))
    return frozenset(found)


def ends_at(pid: int, number: int) -> bool:
    """Whether a process neither handles nor ignores a signal; False where that cannot be told."""
    with suppress(OSError, ValueError):
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
        taken = [line.split()[1] for line in lines if line.startswith(("SigIgn:", "SigCgt:"))]
        return len(taken) == 2 and not any(int(mask, 16) >> (number - 1) & 1 for mask in taken)
    return False


async def gone(pid: int, former: frozenset[int]) -> None:
    """Return once a process has neither these threads nor any that is a Worker's."""
    look_s = _LOOK_S
    while _lives(pid, former):
        await asyncio.sleep(look_s)
        look_s = min(2 * look_s, _LONGEST_LOOK_S)


def _lives(pid: int, former: frozenset[int]) -> bool:
    return bool(workers(pid)) or any(Path(f"/proc/{pid}/task/{one}").exists() for one in former)
