"""Choice of walls, and refusals to start without them."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from libs.pml_common.tests.support.harness import write_key_files
from pml_common.health import report
from pml_common.service import CannotStart
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.adapters.walls import (
    WallsUnavailable,
    best_walls,
    bubblewrap_command,
    unwalled_command,
    verify_walls,
)
from pml_executor.app import sandbox_command, serve
from pml_executor.settings import ExecutorSettings
from services.executor.tests.support.sandboxes import sandbox_config

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="walls are the Linux kernel's"),
]


@pytest.fixture
def tools_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder the only one on the path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


async def test_without_bubblewrap_the_next_best_walls_stand_and_say_why(
    tools_folder: Path,
) -> None:
    command = await best_walls(sandbox_config())
    assert command.walls.outer != "bubblewrap"
    assert "bwrap is not installed" in str(command.walls)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo bwrap: no permissions to create a new namespace >&2; exit 1", "no permissions"),
        ('while [ "$1" != -- ]; do shift; done; shift; exec "$@"', "did not start"),
    ],
    ids=["refused by the system", "builds no walls"],
)
async def test_walls_that_do_not_stand_are_not_believed_in(
    tools_folder: Path, script: str, reason: str
) -> None:
    fake = tools_folder / "bwrap"
    fake.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    fake.chmod(0o755)
    command = await bubblewrap_command(sandbox_config())
    with pytest.raises(WallsUnavailable, match=reason):
        await verify_walls(command)


async def test_a_filter_that_the_kernel_does_not_show_is_not_believed_in() -> None:
    command = await unwalled_command(sandbox_config())
    claimed = replace(command, walls=replace(command.walls, outer="landlock"))
    with pytest.raises(WallsUnavailable, match="Seccomp is 0"):
        await verify_walls(claimed)


async def test_required_walls_that_are_not_there_keep_the_executor_from_starting(
    tools_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pml_executor.adapters.walls.landlock_abi", lambda: 0)
    settings = ExecutorSettings(executor_walls="required")
    with pytest.raises(CannotStart, match=r"bwrap is not installed.*no Landlock.*install"):
        await sandbox_command(settings)
    best = await sandbox_command(settings.model_copy(update={"executor_walls": "best_effort"}))
    assert not best.walls.closed


async def test_walls_may_be_left_out_in_so_many_words() -> None:
    command = await sandbox_command(ExecutorSettings(executor_walls="off"))
    assert command.walls.outer == "none"
    assert command.walls.refused == ()


async def test_an_executor_tells_what_stands_and_is_healthy_without(tmp_path: Path) -> None:
    trusted = Path(write_key_files(tmp_path, "executor")["PML_TRUSTED_KEYS"])
    settings = ExecutorSettings(executor_walls="off", executor_pool_size=1, trusted_keys=trusted)
    async with serve(settings, MemoryBus()) as checks:
        status, body = await report(checks)
    assert status == 200
    told = cast("dict[str, str]", body["checks"])["walls"]
    assert told.startswith("none, rlimits, memory watchdog")
