"""What a Worker may leave in its process, as the kernel sees it: `terminate()` does not end a busy
one, and whoever has no thread runs no more; what a signal does is the whole process's."""

import asyncio
import os
import sys
from contextlib import suppress
from dataclasses import dataclass

from pml_executor.adapters.proc import read_proc

_WORKER = "worker-"
_LOOP = "anon_inode:[eventpoll]"
_COMPUTES = ("R", "D")
_LOOK_S = 0.001
_LONGEST_LOOK_S = 0.01


@dataclass(frozen=True)
class _Thread:
    name: str
    computes: bool


@dataclass(frozen=True)
class Outline:
    """What tells of one more Worker, whatever its thread calls itself: each has event loops of its
    own, which the process has open. `names` are the threads', a Worker's without its number."""

    loops: int
    names: frozenset[str]

    def within(self, first: "Outline | None") -> bool:
        """Whether there is nothing more than at first."""
        if first is None:
            return False
        return self.loops <= first.loops and self.names <= first.names


def can_tell() -> bool:
    """Whether threads can be looked at here."""
    return sys.platform == "linux"


def _workers(threads: dict[int, _Thread]) -> frozenset[int]:
    return frozenset(
        number for number, thread in threads.items() if thread.name.startswith(_WORKER)
    )


def outline(pid: int) -> Outline | None:
    """Of a process; None where that cannot be told."""
    return _outline(pid, _threads(pid))


def workers_and_outline(pid: int) -> tuple[frozenset[int], Outline | None]:
    """The ids of the threads that Deno named as a Worker's, and the outline, at one look; none of
    them where that cannot be told."""
    threads = _threads(pid)
    return _workers(threads), _outline(pid, threads)


def _outline(pid: int, threads: dict[int, _Thread]) -> Outline | None:
    names = {thread.name for thread in threads.values()}
    with suppress(OSError):
        folder = f"/proc/{pid}/fd"
        numbers = os.listdir(folder)  # noqa: PTH208, paths as objects cost three times as much
        loops = sum(_is_loop(f"{folder}/{number}") for number in numbers)
        return Outline(
            loops, frozenset(_WORKER if name.startswith(_WORKER) else name for name in names)
        )
    return None


def ends_at(pid: int, number: int) -> bool:
    """Whether a process neither handles nor ignores a signal; False where that cannot be told."""
    with suppress(OSError, ValueError):
        lines = read_proc(f"/proc/{pid}/status").splitlines()
        taken = [line.split()[1] for line in lines if line.startswith(("SigIgn:", "SigCgt:"))]
        return len(taken) == 2 and not any(int(mask, 16) >> (number - 1) & 1 for mask in taken)
    return False


async def gone(pid: int, former: frozenset[int]) -> None:
    """Return once a process has neither these threads, nor any that is a Worker's, nor any but its
    main one that computes: what Deno does for a Worker elsewhere goes on after that one's end."""
    look_s = _LOOK_S
    while _lives(pid, former):
        await asyncio.sleep(look_s)
        look_s = min(2 * look_s, _LONGEST_LOOK_S)


def _lives(pid: int, former: frozenset[int]) -> bool:
    return any(
        number in former or thread.name.startswith(_WORKER) or (thread.computes and number != pid)
        for number, thread in _threads(pid).items()
    )


def _threads(pid: int) -> dict[int, _Thread]:
    """By their ids; none where that cannot be told."""
    found: dict[int, _Thread] = {}
    folder = f"/proc/{pid}/task"
    with suppress(OSError):
        for number in os.listdir(folder):  # noqa: PTH208
            with suppress(OSError, IndexError):
                named, _, rest = read_proc(f"{folder}/{number}/stat").rpartition(")")
                state = rest.split(maxsplit=1)[0]
                found[int(number)] = _Thread(named.partition("(")[2], state in _COMPUTES)
    return found


def _is_loop(descriptor: str) -> bool:
    with suppress(OSError):
        return os.readlink(descriptor) == _LOOP  # noqa: PTH115
    return False
