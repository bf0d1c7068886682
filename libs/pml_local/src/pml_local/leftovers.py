"""The end of parts that outlived their supervisor."""

import signal
from contextlib import suppress
from pathlib import Path

import psutil

from pml_local.process import terminate_all
from pml_local.state import load, remove_state, runs_since

LEFTOVER_SECONDS = 5.0


def end_leftovers(home: Path) -> None:
    """End the parts that outlived the supervisor of a stack (see parent_death.py).

    The caller holds the folder's lock, so that supervisor is gone. Blocks: call it in a thread.
    """
    recorded = load(home)
    if recorded is None:
        return
    state, written_at = recorded
    parts = [part.pid for part in state.parts.values() if runs_since(part.pid, written_at)]
    living: list[psutil.Process] = []
    for pid in parts:
        with suppress(psutil.NoSuchProcess):
            living.append(psutil.Process(pid))
    terminate_all(living, signal.SIGINT, LEFTOVER_SECONDS)
    remove_state(home)
