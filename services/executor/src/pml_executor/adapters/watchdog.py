"""Memory outside V8's heap: buffers and WebAssembly, which no flag of Deno's bounds."""

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path

from pml_executor.domain.resources import Resources, resident_mib

_INTERVAL_S = 0.02
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


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


async def outgrown(pid: int, max_rss_mib: int) -> None:
    """Return once a process has more than that in memory; wait for ever where nobody can tell."""
    while (held := _held_mib(pid)) is not None:
        if held > max_rss_mib:
            return
        await asyncio.sleep(_INTERVAL_S)
    await asyncio.Event().wait()


def _held_mib(pid: int) -> float | None:
    """None once it has ended; a zombie's file is empty."""
    with suppress(OSError, IndexError):
        return resident_mib(Path(f"/proc/{pid}/statm").read_text(encoding="ascii"), _PAGE_BYTES)
    return None
