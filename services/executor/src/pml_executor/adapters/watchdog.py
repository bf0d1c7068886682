"""Memory outside V8's heap, buffers and WebAssembly, which no flag of Deno's bounds; and limits."""

import asyncio
import math
import os
import sys
from collections.abc import Callable
from contextlib import suppress

from pml_executor.adapters.proc import read_proc
from pml_executor.domain.resources import Resources, cpu_seconds, data_mib, resident_mib

_INTERVAL_S = 0.02
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


def hold_to(pid: int, resources: Resources) -> None:
    """Lower a process's limits. Raises OSError unless it is gone."""
    if sys.platform != "linux":
        return
    import resource

    with suppress(ProcessLookupError):
        for name, (soft, hard) in resources.rlimits.items():
            which = getattr(resource, name)
            _, most = resource.prlimit(pid, which)
            bound = hard if most == resource.RLIM_INFINITY else min(hard, most)
            resource.prlimit(pid, which, (min(soft, bound), bound))


def renew_processor_time(pid: int, resources: Resources) -> None:
    """As much for the next run as for the first. Raises OSError unless the process is gone."""
    if sys.platform != "linux":
        return
    import resource

    with suppress(FileNotFoundError, ProcessLookupError):
        used = cpu_seconds(read_proc(f"/proc/{pid}/stat"), _TICKS)
        _, hard = resource.prlimit(pid, resource.RLIMIT_CPU)
        soft = math.ceil(used) + resources.max_cpu_s
        if hard != resource.RLIM_INFINITY:
            soft = min(soft, hard)
        resource.prlimit(pid, resource.RLIMIT_CPU, (soft, hard))


class Watchdog:
    """Looks at a process's memory while a run is under way, and kills it when that is too much."""

    def __init__(self, pid: int, resources: Resources, kill: Callable[[], None]) -> None:
        self._pid = pid
        self._resources = resources
        self._kill = kill
        self._first_mib: float | None = None
        self._first_data_mib: float | None = None
        self._watch: asyncio.Task[None] | None = None
        self.outgrown = False

    @property
    def fits(self) -> bool:
        """Whether the process holds little more than before its first run, and has taken little
        more: what is left of its limit is the next run's."""
        grown, taken = self._grown_mib(), self._taken_mib()
        most = self._resources
        return grown <= most.most_growth_mib and taken <= most.most_taken_mib

    def start(self) -> None:
        """A run begins, which has as much to itself as any other."""
        if self._first_mib is None:
            self._first_mib = _held_mib(self._pid)
            self._first_data_mib = _held_mib(self._pid, data_mib)
        if self._watch is None:
            most = self._resources.rss_for(self._grown_mib())
            self._watch = asyncio.create_task(self._look(most), name=f"watchdog-{self._pid}")

    def stop(self) -> None:
        """It is over."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    async def _look(self, most_mib: float) -> None:
        while (held := _held_mib(self._pid)) is not None:
            if held > most_mib:
                self.outgrown = True
                self._kill()
                return
            await asyncio.sleep(_INTERVAL_S)

    def _grown_mib(self) -> float:
        held = _held_mib(self._pid)
        return 0.0 if held is None or self._first_mib is None else held - self._first_mib

    def _taken_mib(self) -> float:
        taken, first = _held_mib(self._pid, data_mib), self._first_data_mib
        return 0.0 if taken is None or first is None else taken - first


def _held_mib(pid: int, of: Callable[[str, int], float] = resident_mib) -> float | None:
    """None once the process has ended, when its file is empty, and where nobody can tell."""
    with suppress(OSError, IndexError):
        return of(read_proc(f"/proc/{pid}/statm"), _PAGE_BYTES)
    return None
