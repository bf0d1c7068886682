"""The best walls this machine lets a sandbox process have, proven on a real one."""

import asyncio
import platform
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pml_executor.adapters.cgroups import Groups, find_groups
from pml_executor.adapters.deno_sandbox import DenoCommand, DenoSandbox
from pml_executor.adapters.landlock_thread import confined_thread, landlock_abi
from pml_executor.adapters.launch import Bubblewrap, Launch, Plain
from pml_executor.adapters.orphans import end_orphans
from pml_executor.adapters.parent_death import find_leash
from pml_executor.adapters.worker_code import WorkerCode
from pml_executor.domain.bubblewrap import DENO, RUNTIME, bubblewrap, libraries
from pml_executor.domain.landlock import Right, rules_for
from pml_executor.domain.resources import Resources
from pml_executor.domain.seccomp import seccomp_filter
from pml_executor.domain.syscalls import MACHINES, Machine
from pml_executor.domain.walls import NO_WALLS, Outer, Walls, sandbox_argv, unconfined
from pml_executor.ports import SandboxUnavailable

_LDD_PATIENCE_S = 5.0
_FILES = ("/dev/null", "/dev/urandom")


class Unfit(Exception):
    """Such walls do not stand here, and why."""


@dataclass(frozen=True)
class Site:
    """What walls are built around, and what the process inside is held to."""

    deno: Path
    runtime: Path
    max_message_bytes: int
    max_heap_mib: int
    resources: Resources

    @cached_property
    def worker_code(self) -> WorkerCode:
        """What Workers begin with."""
        return WorkerCode(str(self.deno), self.runtime)

    @cached_property
    def groups(self) -> Groups:
        """The control groups there can be."""
        return find_groups(self.resources)

    def command(
        self, walls: Walls, launch: Launch, deno: str, runtime: str, leash: tuple[str, ...] = ()
    ) -> DenoCommand:
        """Deno at one path with the runtime at another."""
        argv = sandbox_argv(deno, runtime, max_heap_mib=self.max_heap_mib, leash=leash)
        return DenoCommand(
            argv,
            self.max_message_bytes,
            self.max_heap_mib,
            worker=self.worker_code,
            launch=launch,
            walls=replace(walls, further=(*walls.further, *self._limits())),
            resources=self.resources,
            groups=self.groups if self.groups.controllers else None,
        )

    def _limits(self) -> tuple[str, ...]:
        held = ("rlimits", "memory watchdog") if sys.platform == "linux" else ()
        return (*held, *(f"cgroup {name}" for name in self.groups.controllers))


Build = Callable[[Site], Awaitable[DenoCommand]]


async def in_bubblewrap(site: Site) -> DenoCommand:
    """See domain/bubblewrap.py. Raises Unfit."""
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise Unfit("bwrap is not installed")
    end_orphans(str(site.runtime))
    program = seccomp_filter(_machine(), forks=False)
    shared = await _libraries(site.deno)
    command = bubblewrap(bwrap, str(site.deno), str(site.runtime), shared)
    walls = Walls("bubblewrap", ("seccomp",))
    return site.command(walls, Bubblewrap(command, program), DENO, RUNTIME)


async def under_landlock(site: Site) -> DenoCommand:
    """See domain/landlock.py. Raises Unfit."""
    if landlock_abi() == 0:
        raise Unfit("the kernel has no Landlock")
    leash = await find_leash()
    programs = [site.deno, *await _libraries(site.deno)]
    for path in leash[:1]:
        programs += [path, *await _libraries(Path(path))]
    rules = rules_for(map(str, programs), (str(site.runtime), "/proc"), _FILES)
    return _confined(site, Walls("landlock", ("seccomp",)), leash, rules)


async def under_a_filter(site: Site) -> DenoCommand:
    """A system call filter alone. Raises Unfit."""
    return _confined(site, Walls("seccomp"), await find_leash(), None)


async def in_the_open(site: Site) -> DenoCommand:
    """Deno's own permissions alone."""
    launch, leash = Plain(), await find_leash()
    return site.command(NO_WALLS, launch, str(site.deno), str(site.runtime), leash)


_BEST_FIRST: tuple[tuple[Outer, Build], ...] = (
    ("bubblewrap", in_bubblewrap),
    ("landlock", under_landlock),
    ("seccomp", under_a_filter),
)


async def best_walls(site: Site) -> DenoCommand:
    """The first that a real process comes up in; what was tried before is told."""
    refused: list[str] = []
    for outer, build in _BEST_FIRST:
        try:
            command = await build(site)
            await prove(command)
        except Unfit as error:
            refused.append(f"no {outer}: {error}")
        else:
            return replace(command, walls=replace(command.walls, refused=tuple(refused)))
    command = await in_the_open(site)
    return replace(command, walls=replace(command.walls, refused=tuple(refused)))


async def prove(command: DenoCommand) -> None:
    """Start one process, and ask the kernel what it is held to. Raises Unfit."""
    try:
        sandbox = await DenoSandbox.start(command)
    except SandboxUnavailable as error:
        raise Unfit(str(error)) from error
    try:
        problem = _problem(sandbox.pid, command.walls.outer)
    finally:
        await sandbox.close()
    if problem is not None:
        raise Unfit(problem)


def _problem(pid: int, outer: Outer) -> str | None:
    try:
        return unconfined(Path(f"/proc/{pid}/status").read_text(encoding="utf-8"), outer)
    except OSError as error:
        return str(error)


def _confined(
    site: Site, walls: Walls, leash: tuple[str, ...], rules: Mapping[str, Right] | None
) -> DenoCommand:
    try:
        thread = confined_thread(seccomp_filter(_machine(), forks=True), rules)
    except OSError as error:
        raise Unfit(str(error)) from error
    return site.command(walls, Plain(thread), str(site.deno), str(site.runtime), leash)


def _machine() -> Machine:
    machine = platform.machine()
    if sys.platform != "linux" or machine not in MACHINES:
        raise Unfit(f"no system call filter for {sys.platform} on {machine}")
    return machine


async def _libraries(program: Path) -> tuple[str, ...]:
    ldd = shutil.which("ldd")
    if ldd is None:
        raise Unfit("ldd is not installed, which tells the libraries Deno needs")
    process = await asyncio.create_subprocess_exec(
        ldd, str(program), stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL
    )
    try:
        async with asyncio.timeout(_LDD_PATIENCE_S):
            told, _ = await process.communicate()
    except TimeoutError as error:
        process.kill()
        raise Unfit(f"{ldd} does not answer") from error
    return libraries(told.decode(errors="replace"))
