"""Walls on real processes: what a Deno that may do everything can do inside them."""

import asyncio
import json
import os
import resource
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import cast

import pytest

from pml_common.bus.memory import MemoryBus
from pml_common.contracts.executor import RunFinished, RunWorkflow
from pml_common.health import report
from pml_common.service import CannotStart
from pml_executor.adapters.cgroups import Groups, find_groups
from pml_executor.adapters.deno_pool import DenoPool, PoolSize
from pml_executor.adapters.deno_sandbox import DenoCommand, DenoSandbox
from pml_executor.adapters.memory_tools import MemoryTools
from pml_executor.adapters.walls import (
    Build,
    Site,
    Unfit,
    best_walls,
    in_bubblewrap,
    in_the_open,
    prove,
    under_a_filter,
    under_landlock,
)
from pml_executor.app import sandbox_command, serve
from pml_executor.domain.protocol import Program
from pml_executor.domain.resources import Resources
from pml_executor.domain.walls import ENVIRONMENT
from pml_executor.handlers.on_run_workflow import Executor
from pml_executor.ports import SandboxBroken
from pml_executor.settings import ExecutorSettings
from pml_local.testing import eventually

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(sys.platform != "linux", reason="walls are the Linux kernel's"),
]

BUILDS: dict[str, Build] = {
    "bubblewrap": in_bubblewrap,
    "landlock": under_landlock,
    "seccomp": under_a_filter,
    "none": in_the_open,
}
ATTEMPTS = """
const [port, parent, secret, written] = JSON.parse(Deno.env.get("TZ")!);
const tries: Record<string, () => unknown> = {
  hosts: () => Deno.readTextFileSync("/etc/hosts"),
  secret: () => Deno.readTextFileSync(secret),
  home: () => [...Deno.readDirSync("/root")],
  write: () => Deno.writeTextFileSync(written, "x"),
  environment: () => Deno.readTextFileSync(`/proc/${parent}/environ`),
  connect: async () => (await Deno.connect({ hostname: "127.0.0.1", port })).close(),
  listen: () => Deno.listen({ port: 0 }).close(),
  datagram: () => Deno.listenDatagram({ port: 0, transport: "udp" }).close(),
  run: () => new Deno.Command("/bin/true").outputSync(),
  again: () => new Deno.Command(Deno.execPath(), { args: ["--version"] }).outputSync(),
  signal: () => Deno.kill(parent, "SIGCONT"),
};
const said: Record<string, unknown> = {};
for (const [name, attempt] of Object.entries(tries)) {
  try {
    await attempt();
    said[name] = "done";
  } catch (error) {
    said[name] = (error as Error).name;
  }
}
const root = (() => { try { return [...Deno.readDirSync("/")].map((e) => e.name).sort(); }
  catch { return null; } })();
console.log(JSON.stringify({ said, root, host: Deno.hostname(), uid: Deno.uid() }));
"""
FILES = ["hosts", "secret", "home", "write", "environment"]
NETWORK = ["connect", "listen", "datagram"]
PROCESSES = ["run", "again", "signal"]
EVERYTHING = FILES + NETWORK + PROCESSES


def site(runtime: Path | None = None, *, max_rss_mib: int = 512) -> Site:
    """Deno with the executor's runtime, or another."""
    settings = ExecutorSettings()
    return Site(
        deno=Path(settings.executor_deno).resolve(),
        runtime=(runtime or settings.executor_runtime).resolve(),
        max_message_bytes=2**22,
        max_heap_mib=128,
        resources=Resources(max_rss_mib),
    )


async def standing(name: str, *, max_rss_mib: int = 512) -> DenoCommand:
    """Walls of one kind; skips where this machine has none."""
    try:
        command = await BUILDS[name](site(max_rss_mib=max_rss_mib))
        if name != "none":
            await prove(command)
    except Unfit as error:
        pytest.skip(f"no {name} here: {error}")
    return command


@pytest.fixture(params=["bubblewrap", "landlock", "seccomp", "none"])
async def walls(request: pytest.FixtureRequest) -> DenoCommand:
    return await standing(request.param)


@pytest.fixture
async def listener() -> AsyncGenerator[int]:
    """A port of this machine that answers."""
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def attempted(command: DenoCommand, runtime: Path, facts: list[object]) -> dict[str, object]:
    """What a program with every permission of Deno's has to say from inside the same walls."""
    (runtime / "host.ts").write_text(ATTEMPTS, encoding="utf-8")
    at = command.argv.index("run")
    argv = [*command.argv[: at + 1], "--allow-all", *command.argv[at + 1 :]]
    child = await command.launch(argv, {**ENVIRONMENT, "TZ": json.dumps(facts)})
    try:
        async with asyncio.timeout(20):
            said = await child.stdout.readline()
            assert said, await child.stderr.read()
            return json.loads(said)
    finally:
        await child.close(5)


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
    await standing(name)
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    secret, written = tmp_path / "secret", tmp_path / "written"
    secret.write_text("of another", encoding="utf-8")
    command = await BUILDS[name](site(runtime))
    facts: list[object] = [listener, os.getpid(), str(secret), str(written)]
    found = await attempted(command, runtime, facts)
    said = cast("dict[str, str]", found["said"])
    assert list(said) == EVERYTHING
    done = {attempt for attempt, outcome in said.items() if outcome == "done"}
    assert done <= possible
    assert name != "none" or done >= {"secret", "write", "connect", "run"}, "it does try"
    assert written.exists() == ("write" in possible)


def link(path: str | Path) -> str:
    return str(Path(path).readlink())


def text(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")


def entries(path: str) -> list[Path]:
    return list(Path(path).iterdir())


async def test_inside_bubblewrap_there_is_no_machine_to_be_seen(tmp_path: Path) -> None:
    await standing("bubblewrap")
    command = await BUILDS["bubblewrap"](site(tmp_path))
    found = await attempted(command, tmp_path, [1, 1, "/x", "/x"])
    root = cast("list[str]", found["root"])
    assert set(root) <= {"dev", "lib", "lib64", "proc", "sandbox", "usr"}
    assert found["host"] == "sandbox"
    assert found["uid"] == 65534


async def test_a_process_has_namespaces_of_its_own_and_no_capability() -> None:
    sandbox = await DenoSandbox.start(await standing("bubblewrap"))
    try:
        for name in ("net", "pid", "ipc", "uts", "mnt", "user"):
            assert link(f"/proc/{sandbox.pid}/ns/{name}") != link(f"/proc/self/ns/{name}"), name
        assert "CapBnd:\t0000000000000000" in text(f"/proc/{sandbox.pid}/status")
    finally:
        await sandbox.close()


async def test_a_process_is_held_to_its_limits_and_given_no_descriptor(walls: DenoCommand) -> None:
    sandbox = await DenoSandbox.start(walls)
    try:
        for name in ("RLIMIT_CORE", "RLIMIT_FSIZE"):
            assert resource.prlimit(sandbox.pid, getattr(resource, name)) == (0, 0)
        assert resource.prlimit(sandbox.pid, resource.RLIMIT_NOFILE)[1] <= 256
        held = {link(path).split(":")[0] for path in entries(f"/proc/{sandbox.pid}/fd")}
        assert held <= {"pipe", "socket", "anon_inode", "/dev/null", "/dev/urandom"}
    finally:
        await sandbox.close()


async def test_a_killed_process_leaves_nothing(walls: DenoCommand) -> None:
    sandbox = await DenoSandbox.start(walls)
    await sandbox.run(Program(code="for (;;) ;", args={}, seed="0" * 32, now=0))
    await sandbox.close()
    assert not sandbox.alive
    await eventually(lambda: not Path(f"/proc/{sandbox.pid}").exists())
    await sandbox.close()


@pytest.mark.parametrize("turns", [1, 2, 3, 5, 8, 13])
async def test_a_start_given_up_midway_leaves_nothing(walls: DenoCommand, turns: int) -> None:
    mark = f"--seed={os.getpid()}{turns}"
    command = replace(walls, argv=[*walls.argv, mark])
    start = asyncio.create_task(DenoSandbox.start(command))
    for _ in range(turns):
        await asyncio.sleep(0)
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    await eventually(lambda: not any(mark in words for words in command_lines()))


def command_lines() -> list[str]:
    lines: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            lines.append(path.read_text(encoding="utf-8", errors="replace"))
    return lines


RunIn = Callable[[DenoCommand, str], Awaitable[RunFinished]]


@pytest.fixture
def run_in(
    make_command: Callable[..., RunWorkflow],
    make_executor: Callable[..., Executor],
    finish: Callable[[RunWorkflow, Executor], Awaitable[RunFinished]],
) -> RunIn:
    async def run(command: DenoCommand, code: str) -> RunFinished:
        async with DenoPool(lambda: DenoSandbox.start(command), PoolSize(spares=1)) as pool:
            executor = make_executor(MemoryBus(), pool, MemoryTools())
            return await finish(make_command(code), executor)

    return run


async def test_a_program_cannot_tell_what_stands_around_it(
    walls: DenoCommand, run_in: RunIn
) -> None:
    code = """const names = Object.getOwnPropertyNames(globalThis).sort();
    const at = new Error("x").stack!.split("\\n").length;
    return [names.length, at, typeof navigator, Date.now() > 0, await mcp.api.a({ x: 1 })];"""
    inside = await run_in(walls, code)
    outside = await run_in(await in_the_open(site()), code)
    assert inside.error is None
    assert inside.result == outside.result


@pytest.mark.parametrize(
    "code",
    [
        "const kept = []; for (;;) kept.push(new Uint8Array(2 ** 24).fill(1));",
        "return new Uint8Array(2 ** 31).fill(1).length;",
        "const kept = []; for (;;) kept.push(new Array(1000).fill({}));",
    ],
    ids=["many buffers", "one large buffer", "heap"],
)
async def test_memory_outside_the_heap_ends_a_run_as_the_heap_does(
    walls: DenoCommand, run_in: RunIn, code: str
) -> None:
    held = replace(walls, resources=Resources(max_rss_mib=256))
    fact = await run_in(held, code)
    assert fact.error is not None
    assert (fact.error.kind, "MiB of memory" in fact.error.message) == ("memory_limit", True)


async def test_a_control_group_ends_what_nobody_watches_and_leaves_no_folder() -> None:
    resources = Resources(max_rss_mib=128)
    groups = find_groups(resources)
    if "memory" not in groups.controllers:
        pytest.skip("this process may make no control group for memory")
    unwatched = replace(await in_the_open(site()), groups=groups, resources=Resources(4096))
    sandbox = await DenoSandbox.start(unwatched)
    code = "const kept = []; for (;;) kept.push(new Uint8Array(2 ** 24).fill(1));"
    try:
        await sandbox.run(Program(code=code, args={}, seed="0" * 32, now=0))
        async with asyncio.timeout(20):
            with pytest.raises(SandboxBroken, match="MiB of memory") as error:
                await sandbox.receive()
        assert error.value.kind == "memory_limit"
    finally:
        await sandbox.close()
    assert not group_folders(groups)


def group_folders(groups: Groups) -> list[Path]:
    """Those that this process has made and not removed."""
    mount, name = Path("/sys/fs/cgroup"), f"pml-sandbox-{os.getpid()}-*"
    return [f for place in groups.controllers.values() for f in (mount / place.folder).glob(name)]


async def test_many_processes_at_once_leave_no_group() -> None:
    command = await best_walls(site())
    if command.groups is None:
        pytest.skip("this process may make no control group")
    sandboxes = await asyncio.gather(*(DenoSandbox.start(command) for _ in range(6)))
    assert len(group_folders(command.groups)) >= 6
    await asyncio.gather(*(sandbox.close() for sandbox in sandboxes))
    assert not group_folders(command.groups)


def test_groups_of_an_executor_that_was_killed_are_swept_away() -> None:
    groups = find_groups(Resources())
    if not groups.controllers:
        pytest.skip("this process may make no control group")
    place = next(iter(groups.controllers.values()))
    left = Path("/sys/fs/cgroup", place.folder, f"pml-sandbox-{2**22 + 1}-0")
    left.mkdir()
    find_groups(Resources())
    assert not left.exists()


async def test_who_ends_its_own_worker_is_noticed_at_once(tmp_path: Path) -> None:
    sandbox = await DenoSandbox.start(await in_the_open(site(bare_runtime(tmp_path))))
    began = perf_counter()
    await sandbox.run(Program(code="close();", args={}, seed="0" * 32, now=0))
    try:
        async with asyncio.timeout(10):
            with pytest.raises(SandboxBroken, match="ended its own Worker") as error:
                await sandbox.receive()
        assert error.value.kind == "user_error"
        assert perf_counter() - began < 5
    finally:
        await sandbox.close()


def bare_runtime(folder: Path) -> Path:
    """A runtime whose Worker keeps every global."""
    source = ExecutorSettings().executor_runtime
    for path in source.rglob("*.ts"):
        target = folder / path.relative_to(source)
        target.parent.mkdir(exist_ok=True, parents=True)
        text = path.read_text(encoding="utf-8").replace("!KEPT.includes(name)", "false")
        target.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def tools_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


async def test_without_bubblewrap_the_next_best_walls_stand_and_say_why(
    tools_folder: Path,
) -> None:
    command = await best_walls(site())
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
    (tools_folder / "ldd").symlink_to("/usr/bin/ldd")
    fake = tools_folder / "bwrap"
    fake.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    fake.chmod(0o755)
    command = await in_bubblewrap(site())
    with pytest.raises(Unfit, match=reason):
        await prove(command)


async def test_a_filter_that_the_kernel_does_not_show_is_not_believed_in() -> None:
    command = await in_the_open(site())
    claimed = replace(command, walls=replace(command.walls, outer="landlock"))
    with pytest.raises(Unfit, match="Seccomp is 0"):
        await prove(claimed)


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


async def test_an_executor_tells_what_stands_and_is_healthy_without() -> None:
    settings = ExecutorSettings(executor_walls="off", executor_pool_size=1)
    async with serve(settings, MemoryBus()) as checks:
        status, body = await report(checks)
    assert status == 200
    told = cast("dict[str, str]", body["checks"])["walls"]
    assert told.startswith("none, rlimits, memory watchdog")
