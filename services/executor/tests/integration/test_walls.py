"""Walls on real processes: the access that a Deno with every permission has inside them."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import cast

import pytest

from pml_common.bus.sockets.folder import SocketFolder
from pml_executor.adapters.deno_sandbox import DenoSandbox
from pml_local.approver import write_key
from services.executor.tests.support.sandboxes import (
    BUILDS,
    attempted,
    sandbox_config,
    walled_command,
)

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="walls are the Linux kernel's"),
]

FILES = ["hosts", "secret", "home", "write", "environment"]
NETWORK = ["connect", "listen", "datagram"]
PROCESSES = ["run", "again", "signal"]
SOCKET = ["socket"]
"""The gateway's, through which tools are called."""
EVERYTHING = FILES + NETWORK + PROCESSES + SOCKET


@pytest.fixture
async def listener() -> AsyncGenerator[int]:
    """A port of this machine that accepts connections."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(
    ("name", "possible"),
    [
        ("bubblewrap", set[str]()),
        ("landlock", {"again"}),
        ("seccomp", {*FILES, "run", "again"}),
        ("none", set(EVERYTHING)),
    ],
)
async def test_behind_walls_even_deno_with_every_permission_reaches_nothing(
    name: str, possible: set[str], tmp_path: Path, listener: int
) -> None:
    await walled_command(name)
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    (runtime / "imports.json").write_text("{}", encoding="utf-8")
    secret, written = tmp_path / "secret", tmp_path / "written"
    secret.write_text("of another", encoding="utf-8")
    command = await BUILDS[name](sandbox_config(runtime))
    with SocketFolder(tmp_path / "sockets").listen("gateway"):
        socket = str(tmp_path / "sockets" / "gateway.sock")
        facts: list[object] = [listener, os.getpid(), str(secret), str(written), socket]
        found = await attempted(command, runtime, facts)
    said = cast("dict[str, str]", found["said"])
    assert list(said) == EVERYTHING
    done = {attempt for attempt, outcome in said.items() if outcome == "done"}
    assert done <= possible
    tried = {"secret", "write", "connect", "run", "socket"}
    assert name != "none" or done >= tried, "it does try"
    assert written.exists() == ("write" in possible)


def link(path: str | Path) -> str:
    return str(Path(path).readlink())


def text(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")


async def test_inside_bubblewrap_there_is_no_machine_to_be_seen(tmp_path: Path) -> None:
    await walled_command("bubblewrap")
    command = await BUILDS["bubblewrap"](sandbox_config(tmp_path))
    found = await attempted(command, tmp_path, [1, 1, "/x", "/x"])
    root = cast("list[str]", found["root"])
    assert set(root) <= {"dev", "lib", "lib64", "proc", "sandbox", "usr"}
    assert found["host"] == "sandbox"
    assert found["uid"] == 65534


async def test_a_process_has_namespaces_of_its_own_and_no_capability() -> None:
    sandbox = await DenoSandbox.start(await walled_command("bubblewrap"))
    try:
        for name in ("net", "pid", "ipc", "uts", "mnt", "user"):
            assert link(f"/proc/{sandbox.pid}/ns/{name}") != link(f"/proc/self/ns/{name}"), name
        assert "CapBnd:\t0000000000000000" in text(f"/proc/{sandbox.pid}/status")
    finally:
        await sandbox.close()


@pytest.mark.parametrize("name", ["bubblewrap", "landlock"])
async def test_behind_walls_the_approvers_key_cannot_be_read(name: str, tmp_path: Path) -> None:
    await walled_command(name)
    runtime, key = tmp_path / "runtime", tmp_path / "state" / "approver.key"
    runtime.mkdir()
    (runtime / "imports.json").write_text("{}", encoding="utf-8")
    write_key(key, tmp_path / "data")
    command = await BUILDS[name](sandbox_config(runtime))
    found = await attempted(command, runtime, [1, os.getpid(), str(key), str(tmp_path / "x")])
    assert cast("dict[str, str]", found["said"])["secret"] != "done"
