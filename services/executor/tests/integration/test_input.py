"""Only the host reads a process's input when the next program starts: reads that a program leaves
behind, and hosts that do not get what they are sent."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pml_executor.adapters.deno_command import DenoCommand
from pml_executor.adapters.walls import unwalled_command
from pml_executor.settings import ExecutorSettings
from services.executor.tests.support.sandboxes import (
    NEXT,
    NOW,
    RESOURCES,
    SEEN,
    SOON,
    bare_command,
    later,
    reused,
    sandbox_config,
    started,
    value_of,
)

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process is used again"),
]

FILES = "globalThis.console = {}; const fs = await import('node:fs');"
READS = {
    "one": "Deno.stdin.read(new Uint8Array(1e5));",
    "many": "for (let i = 0; i < 5; i++) Deno.stdin.read(new Uint8Array(1e5));",
    "of one byte": "Deno.stdin.read(new Uint8Array(1));",
    "of an order's length": "Deno.stdin.read(new Uint8Array(9));",
    "of a stream": "Deno.stdin.readable.getReader().read();",
    "of Node's files": f"{FILES} fs.read(0, new Uint8Array(64), 0, 64, null, () => {{}});",
    "many of Node's files": f"{FILES} for (let i = 0; i < 9; i++)"
    " fs.read(0, new Uint8Array(9), 0, 9, null, () => {});",
    "of Node's process": "globalThis.console = {}; (await import('node:process')).stdin"
    ".on('data', () => {});",
}
LEFT_BEHIND = {name: f"{read} {SOON}" for name, read in READS.items()} | {
    "that blocks": later(f"{NOW} Deno.stdin.readSync(new Uint8Array(9));")
}
UNHEARD = {
    "no check": ('name === "check"', "false"),
    "another check": ("`${nonce} ", "`other ${nonce} "),
    "another nonce": ("this.#nonce = newNonce()", "this.#nonce = newNonce(), 'other'"),
}


@pytest.fixture(scope="session")
async def bare(tmp_path_factory: pytest.TempPathFactory) -> DenoCommand:
    """A process without walls whose Worker keeps every global."""
    return await bare_command(tmp_path_factory.mktemp("bare"))


@pytest.mark.parametrize("code", LEFT_BEHIND.values(), ids=LEFT_BEHIND)
async def test_who_leaves_a_read_behind_is_killed(bare: DenoCommand, code: str) -> None:
    command = replace(bare, stop_timeout_s=1)
    async with started(command) as sandbox:
        assert not await reused(sandbox, code)


@pytest.mark.parametrize(("ours", "other"), UNHEARD.values(), ids=UNHEARD)
async def test_a_host_that_does_not_answer_a_check_is_killed(
    tmp_path: Path, ours: str, other: str
) -> None:
    runtime = tmp_path / "runtime"
    shutil.copytree(ExecutorSettings().executor_runtime, runtime)
    host = (runtime / "host.js").read_text(encoding="utf-8")
    assert host.count(ours) == 1
    (runtime / "host.js").write_text(host.replace(ours, other), encoding="utf-8")
    command = replace(
        await unwalled_command(sandbox_config(runtime)), resources=RESOURCES, stop_timeout_s=2
    )
    async with started(command) as sandbox:
        assert not await reused(sandbox, "return 0;")


async def test_every_run_begins_with_a_check_of_its_own(bare: DenoCommand) -> None:
    async with started(bare) as sandbox:
        for _ in range(5):
            assert await reused(sandbox, "return 0;")
            assert await value_of(sandbox, NEXT) == SEEN
            sandbox.finish()
            assert await sandbox.renew()
