"""Limits of a process, and a watchdog of its memory outside V8's heap, such as buffers and
WebAssembly, which no flag of Deno's bounds."""

import asyncio
import math
import os
import sys
from collections.abc import Callable
from contextlib import suppress

from pml_executor.adapters.procfs import read_proc
from pml_executor.domain.resources import Resources, cpu_seconds, data_mib, resident_mib

_INTERVAL_S = 0.02
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


def apply_limits(pid: int, resources: Resources) -> None:
    """Lower a process's limits. Raises OSError, but not when the process is gone."""
    if sys.platform != "linux":
        return
    import resource

    with suppress(ProcessLookupError):
        for name, (soft, hard) in resources.rlimits.items():
            which = getattr(resource, name)
            _, most = resource.prlimit(pid, which)
            bound = hard if most == resource.RLIM_INFINITY else min(hard, most)
            resource.prlimit(pid, which, (min(soft, bound), bound))


def extend_cpu_limit(pid: int, resources: Resources) -> None:
    """Grant the next run as much processor time as the first. Raises OSError, but not when the
    process is gone."""
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
    """Polls a process's memory while a run is under way, and kills the process above its limit."""

    def __init__(self, pid: int, resources: Resources, kill: Callable[[], None]) -> None:
        self._pid = pid
        self._resources = resources
        self._kill = kill
        self._first_mib: float | None = None
        self._first_data_mib: float | None = None
        self._watch: asyncio.Task[None] | None = None
        self.exceeded_memory = False

    @property
    def within_bounds(self) -> bool:
        """Whether the process's resident and allocated memory have grown little since its first
        run: the rest of its limit is the next run's."""
        grown, taken = self._grown_mib(), self._taken_mib()
        most = self._resources
        return grown <= most.max_growth_mib and taken <= most.max_data_growth_mib

    def measure(self) -> None:
        """Take the process's present memory as what it has before any run."""
        self._first_mib = _memory_mib(self._pid)
        self._first_data_mib = _memory_mib(self._pid, data_mib)

    def start(self) -> None:
        """Watch a run, which may take as much memory as any other."""
        if self._first_mib is None:
            self.measure()
        if self._watch is None:
            most = self._resources.rss_for(self._grown_mib())
            self._watch = asyncio.create_task(self._look(most), name=f"watchdog-{self._pid}")

    def stop(self) -> None:
        """Stop watching."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    async def _look(self, most_mib: float) -> None:
        while (held := _memory_mib(self._pid)) is not None:
            if held > most_mib:
                self.exceeded_memory = True
                self._kill()
                return
            await asyncio.sleep(_INTERVAL_S)

    def _grown_mib(self) -> float:
        held = _memory_mib(self._pid)
        return 0.0 if held is None or self._first_mib is None else held - self._first_mib

    def _taken_mib(self) -> float:
        taken, first = _memory_mib(self._pid, data_mib), self._first_data_mib
        return 0.0 if taken is None or first is None else taken - first


def _memory_mib(pid: int, of: Callable[[str, int], float] = resident_mib) -> float | None:
    """Return memory in MiB; None once the process has ended, and where there is no /proc."""
    with suppress(OSError, IndexError):
        return of(read_proc(f"/proc/{pid}/statm"), _PAGE_BYTES)
    return None
