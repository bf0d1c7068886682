"""Orphans of bubblewrap that a killed executor leaves are ended by the next one."""

import asyncio
import fcntl
import os
from asyncio.subprocess import DEVNULL
from pathlib import Path

import pytest

from libs.pml_local.tests.support.harness import eventually
from pml_executor.adapters.deno_sandbox import DenoSandbox
from pml_executor.adapters.orphans import end_orphans
from services.executor.tests.support.sandboxes import sandbox_config, walled_command

pytestmark = pytest.mark.integration


async def test_a_bwrap_whose_parent_died_before_it_was_told_to_go_on_is_ended(
    tmp_path: Path,
) -> None:
    await walled_command("bubblewrap")
    told, full = os.pipe()
    size = fcntl.fcntl(full, fcntl.F_GETPIPE_SZ)
    os.write(full, b"x" * size)  # so that bwrap blocks as it reports its child
    words = ("--unshare-all", "--die-with-parent", "--as-pid-1", "--info-fd", str(full))
    bind = ("--ro-bind", str(tmp_path), "/sandbox/runtime")
    watching = await asyncio.create_subprocess_exec(
        "bwrap", *words, *bind, "true", pass_fds=(full,), stdin=DEVNULL
    )
    orphan = await eventually(lambda: _children(watching.pid))
    end_orphans(str(tmp_path))
    assert _children(watching.pid) == orphan
    watching.kill()
    await watching.wait()
    os.close(full)
    os.close(told)
    assert _lives(orphan)
    end_orphans("/another/runtime")
    assert _lives(orphan)
    end_orphans(str(tmp_path))
    await eventually(lambda: not _lives(orphan))


async def test_what_runs_is_nobodys_orphan() -> None:
    command = await walled_command("bubblewrap")
    sandbox = await DenoSandbox.start(command)
    end_orphans(str(sandbox_config().runtime))
    assert sandbox.alive
    await sandbox.close()


def _children(pid: int) -> str:
    """Return the ids of a process's children, separated by spaces."""
    return Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").strip()


def _lives(pid: str) -> bool:
    return Path("/proc", pid).exists()
