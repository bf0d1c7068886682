"""Control groups of real processes, where the executor may create any."""

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_executor.adapters.cgroups import Groups, find_groups
from pml_executor.adapters.deno_sandbox import DenoSandbox
from pml_executor.adapters.walls import (
    best_walls,
    unwalled_command,
)
from pml_executor.domain.protocol import Program
from pml_executor.domain.resources import Resources
from pml_executor.ports import SandboxBroken
from services.executor.tests.support.sandboxes import sandbox_config

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="walls are the Linux kernel's"),
]


async def test_a_control_group_ends_what_nobody_watches_and_leaves_no_folder() -> None:
    resources = Resources(max_rss_mib=128)
    groups = find_groups(resources)
    if "memory" not in groups.controllers:
        pytest.skip("this process may make no control group for memory")
    before = group_folders(groups)
    unwatched = replace(
        await unwalled_command(sandbox_config()), groups=groups, resources=Resources(4096)
    )
    sandbox = await DenoSandbox.start(unwatched)
    code = "const kept = []; for (;;) kept.push(new Uint8Array(2 ** 24).fill(1));"
    try:
        await sandbox.run(Program(code=code, args={}, seed="0" * 32, now=0))
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(SandboxBroken, match="MiB of memory") as error:
                await sandbox.receive()
        assert error.value.kind == "memory_limit"
    finally:
        await sandbox.close()
    assert group_folders(groups) <= before


def group_folders(groups: Groups) -> set[Path]:
    """Return the groups that this process has created and not removed, without other processes'."""
    mount, name = Path("/sys/fs/cgroup"), f"pml-sandbox-{os.getpid()}-*"
    return {f for place in groups.controllers.values() for f in (mount / place.folder).glob(name)}


async def test_many_processes_at_once_leave_no_group() -> None:
    command = await best_walls(sandbox_config())
    if command.groups is None:
        pytest.skip("this process may make no control group")
    before = group_folders(command.groups)
    sandboxes = await asyncio.gather(*(DenoSandbox.start(command) for _ in range(6)))
    assert len(group_folders(command.groups) - before) >= 6
    await asyncio.gather(*(sandbox.close() for sandbox in sandboxes))
    assert group_folders(command.groups) <= before


def test_a_process_that_is_gone_joins_no_group() -> None:
    groups = find_groups(Resources())
    gone = subprocess.Popen(["true"])
    gone.wait()
    group = groups.new()
    group.add(gone.pid)
    assert group.remove()


def test_groups_of_an_executor_that_was_killed_are_swept_away() -> None:
    groups = find_groups(Resources())
    if not groups.controllers:
        pytest.skip("this process may make no control group")
    place = next(iter(groups.controllers.values()))
    left = Path("/sys/fs/cgroup", place.folder, f"pml-sandbox-{2**22 + 1}-0")
    left.mkdir()
    find_groups(Resources())
    assert not left.exists()
