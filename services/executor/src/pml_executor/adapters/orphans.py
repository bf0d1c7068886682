"""What a killed executor may leave of bubblewrap.

bwrap dies with its executor. If that happens between its binding itself to the executor's life and
its telling its child to go on, the child waits for ever: outside of anything, before Deno, before
any program, and for nobody. The next executor ends it.
"""

import os
import signal
from contextlib import suppress
from pathlib import Path

_BWRAP = "bwrap"


def end_orphans(runtime: str) -> None:
    """End every bwrap that waits in a process namespace of its own for a parent that is gone, and
    was to bind this folder."""
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
    """Raises FileNotFoundError when the process is gone."""
    text = (folder / "status").read_text(encoding="utf-8", errors="replace")
    fields = (line.partition(":") for line in text.splitlines())
    return {name: value.strip() for name, _, value in fields}
