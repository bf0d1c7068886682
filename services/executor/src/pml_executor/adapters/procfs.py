"""Files of /proc, and what they show of a sandbox process's threads, event loops and signals.

`terminate()` does not end a busy Worker, so the kernel is asked: a Worker without a thread runs no
more. What a signal does is a property of the whole process.
"""

import asyncio
import os
import sys
from contextlib import suppress
from dataclasses import dataclass

_MAX_BYTES = 4096
_WORKER = "worker-"
_EVENT_LOOP = "anon_inode:[eventpoll]"
_COMPUTING_STATES = ("R", "D")
_POLL_S = 0.001
_MAX_POLL_S = 0.01


def read_proc(path: str) -> str:
    """Return the text of a small file of /proc. Raises OSError.

    Read in one call: these files are read many times in each run, and path objects and buffered
    files cost several times as much.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _MAX_BYTES).decode(errors="replace")
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class _Thread:
    name: str
    computes: bool


@dataclass(frozen=True)
class ThreadSnapshot:
    """Evidence of additional Workers, however their threads are named: each has event loops of its
    own, which the process has open. `names` are the threads' names, a Worker's without its
    number."""

    loops: int
    names: frozenset[str]

    def adds_nothing_to(self, first: "ThreadSnapshot | None") -> bool:
        """Whether it shows no more than the first snapshot."""
        if first is None:
            return False
        return self.loops <= first.loops and self.names <= first.names


def can_inspect_threads() -> bool:
    """Whether this system shows a process's threads."""
    return sys.platform == "linux"


def _workers(threads: dict[int, _Thread]) -> frozenset[int]:
    return frozenset(
        number for number, thread in threads.items() if thread.name.startswith(_WORKER)
    )


def thread_snapshot(pid: int) -> ThreadSnapshot | None:
    """Return the snapshot of a process; None where it cannot be read."""
    return _snapshot(pid, _threads(pid))


def workers_and_snapshot(pid: int) -> tuple[frozenset[int], ThreadSnapshot | None]:
    """Return the ids of the threads that Deno named as a Worker's, and the snapshot, from one
    reading; no ids and None where they cannot be read."""
    threads = _threads(pid)
    return _workers(threads), _snapshot(pid, threads)


def _snapshot(pid: int, threads: dict[int, _Thread]) -> ThreadSnapshot | None:
    names = {thread.name for thread in threads.values()}
    with suppress(OSError):
        folder = f"/proc/{pid}/fd"
        numbers = os.listdir(folder)  # noqa: PTH208, paths as objects cost three times as much
        loops = sum(_is_event_loop(f"{folder}/{number}") for number in numbers)
        return ThreadSnapshot(
            loops, frozenset(_WORKER if name.startswith(_WORKER) else name for name in names)
        )
    return None


def has_default_action(pid: int, number: int) -> bool:
    """Whether a process neither handles nor ignores a signal; False where that cannot be read."""
    with suppress(OSError, ValueError):
        lines = read_proc(f"/proc/{pid}/status").splitlines()
        masks = [line.split()[1] for line in lines if line.startswith(("SigIgn:", "SigCgt:"))]
        return len(masks) == 2 and not any(int(mask, 16) >> (number - 1) & 1 for mask in masks)
    return False


async def workers_gone(pid: int, former: frozenset[int]) -> None:
    """Wait until a process has none of the threads `former`, no thread of a Worker, and no
    computing thread but its main one: work that Deno does for a Worker on other threads outlives
    that Worker."""
    delay_s = _POLL_S
    while _has_workers(pid, former):
        await asyncio.sleep(delay_s)
        delay_s = min(2 * delay_s, _MAX_POLL_S)


def _has_workers(pid: int, former: frozenset[int]) -> bool:
    return any(
        number in former or thread.name.startswith(_WORKER) or (thread.computes and number != pid)
        for number, thread in _threads(pid).items()
    )


def _threads(pid: int) -> dict[int, _Thread]:
    """Return the threads by their ids; none where they cannot be read."""
    found: dict[int, _Thread] = {}
    folder = f"/proc/{pid}/task"
    with suppress(OSError):
        for number in os.listdir(folder):  # noqa: PTH208
            with suppress(OSError, IndexError):
                named, _, rest = read_proc(f"{folder}/{number}/stat").rpartition(")")
                state = rest.split(maxsplit=1)[0]
                found[int(number)] = _Thread(named.partition("(")[2], state in _COMPUTING_STATES)
    return found


def _is_event_loop(descriptor: str) -> bool:
    with suppress(OSError):
        return os.readlink(descriptor) == _EVENT_LOOP  # noqa: PTH115
    return False
