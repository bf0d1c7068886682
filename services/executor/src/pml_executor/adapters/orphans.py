"""Sandbox processes end with their executor: prevention, and cleanup of what bubblewrap leaves."""

import asyncio
import os
import shutil
import signal
from asyncio.subprocess import DEVNULL
from contextlib import suppress
from pathlib import Path

_BWRAP = "bwrap"
_PROBE_TIMEOUT_S = 5.0


async def parent_death_command() -> tuple[str, ...]:
    """Return a command prefix under which the kernel kills a process when its parent ends and no
    program gains privileges; empty where the system has none.

    It backs up the end of the process's input. util-linux's setpriv costs half a millisecond; a
    hook between fork and exec would block the event loop for four while the executor's memory is
    copied.
    """
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        return ()
    prefix = (setpriv, "--pdeathsig", "KILL", "--no-new-privs", "--")
    try:
        probe = await asyncio.create_subprocess_exec(
            *prefix, setpriv, "--version", stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL
        )
        async with asyncio.timeout(_PROBE_TIMEOUT_S):
            return prefix if await probe.wait() == 0 else ()
    except (OSError, TimeoutError):
        return ()


def end_orphans(runtime: str) -> None:
    """Kill every bwrap in its own process namespace whose parent has ended and whose command binds
    the folder `runtime`.

    bwrap dies with its executor. If that happens after it has bound itself to the executor's life
    and before it has released its child, the child waits for ever: outside of the sandbox, before
    Deno and any program have started. The next executor ends it.
    """
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if _is_orphan(folder, runtime):
                os.kill(int(folder.name), signal.SIGKILL)


def _is_orphan(folder: Path, runtime: str) -> bool:
    status = _status(folder)
    if status["Name"] != _BWRAP or len(status.get("NSpid", "").split()) < 2:
        return False
    words = (folder / "cmdline").read_text(encoding="utf-8", errors="replace").split("\0")
    if runtime not in words:
        return False
    try:
        return _status(folder.parent / status["PPid"])["Name"] != _BWRAP
    except FileNotFoundError:
        return True


def _status(folder: Path) -> dict[str, str]:
    """Parse /proc/<pid>/status. Raises FileNotFoundError when the process is gone."""
    text = (folder / "status").read_text(encoding="utf-8", errors="replace")
    fields = (line.partition(":") for line in text.splitlines())
    return {name: value.strip() for name, _, value in fields}
