"""What ends a sandbox process together with the executor, besides the end of its input."""

import asyncio
import shutil
from asyncio.subprocess import DEVNULL

_PROBE_PATIENCE_S = 5.0


async def find_leash() -> tuple[str, ...]:
    """A command prefix under which the kernel kills a process when its parent ends and no
    program gains privileges; empty where the system has none.

    util-linux's setpriv costs half a millisecond; a hook between fork and exec would hold up the
    event loop for four while the executor's memory is copied.
    """
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return ()
    leash = (setpriv, "--pdeathsig", "KILL", "--no-new-privs", "--")
    try:
        probe = await asyncio.create_subprocess_exec(
            *leash, "true", stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL
        )
        async with asyncio.timeout(_PROBE_PATIENCE_S):
            return leash if await probe.wait() == 0 else ()
    except (OSError, TimeoutError):
        return ()
