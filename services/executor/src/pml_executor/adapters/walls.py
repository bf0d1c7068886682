"""Choice of the best walls that this machine allows, verified with a real sandbox process."""

import asyncio
import platform
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from mmap import ACCESS_READ, mmap
from pathlib import Path

from pml_executor.adapters.cgroups import Groups, find_groups
from pml_executor.adapters.deno_command import DenoCommand
from pml_executor.adapters.deno_sandbox import DenoSandbox
from pml_executor.adapters.landlock_thread import confined_thread, landlock_abi
from pml_executor.adapters.launch import Bubblewrap, Launch, Plain
from pml_executor.adapters.orphans import end_orphans, parent_death_command
from pml_executor.adapters.worker_code import WorkerCode
from pml_executor.domain.bubblewrap import DENO, RUNTIME, bubblewrap, libraries, loader_of
from pml_executor.domain.landlock import Right, rules_for
from pml_executor.domain.realms import Realms
from pml_executor.domain.resources import Resources
from pml_executor.domain.seccomp import seccomp_filter
from pml_executor.domain.syscalls import MACHINES, Machine
from pml_executor.domain.walls import NO_WALLS, Outer, Walls, missing_confinement, sandbox_argv
from pml_executor.ports import SandboxUnavailable

_LOADER_TIMEOUT_S = 5.0
_FILES = ("/dev/null", "/dev/urandom")


class WallsUnavailable(Exception):
    """This machine does not support such walls; the message says why."""


@dataclass(frozen=True)
class SandboxConfig:
    """Deno, runtime and limits of the sandbox processes that walls are built around."""

    deno: Path
    runtime: Path
    max_message_bytes: int
    max_heap_mib: int
    resources: Resources
    realms: Realms | None = None

    @cached_property
    def worker_code(self) -> WorkerCode:
        """The code that every Worker starts with."""
        return WorkerCode(str(self.deno), self.runtime)

    @cached_property
    def groups(self) -> Groups:
        """The control groups that can be created here."""
        return find_groups(self.resources)

    def command(
        self, walls: Walls, launch: Launch, deno: str, runtime: str, prefix: tuple[str, ...] = ()
    ) -> DenoCommand:
        """Build the command for `deno` and `runtime` at the paths that the sandbox sees."""
        argv = sandbox_argv(deno, runtime, max_heap_mib=self.max_heap_mib, prefix=prefix)
        return DenoCommand(
            argv,
            self.max_message_bytes,
            self.max_heap_mib,
            worker=self.worker_code,
            launch=launch,
            walls=replace(walls, further=(*walls.further, *self._limits())),
            resources=self.resources,
            groups=self.groups if self.groups.controllers else None,
            realms=self.realms,
            import_map=(self.runtime / "imports.json").read_text(encoding="utf-8"),
        )

    def _limits(self) -> tuple[str, ...]:
        always = ("rlimits", "memory watchdog") if sys.platform == "linux" else ()
        return (*always, *(f"cgroup {name}" for name in self.groups.controllers))


Build = Callable[[SandboxConfig], Awaitable[DenoCommand]]


async def bubblewrap_command(site: SandboxConfig) -> DenoCommand:
    """Build the command inside bubblewrap (domain/bubblewrap.py). Raises WallsUnavailable."""
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise WallsUnavailable("bwrap is not installed")
    end_orphans(str(site.runtime))
    program = seccomp_filter(_machine(), forks=False)
    shared = await _libraries(site.deno)
    command = bubblewrap(bwrap, str(site.deno), str(site.runtime), shared)
    walls = Walls("bubblewrap", ("seccomp",))
    return site.command(walls, Bubblewrap(command, program), DENO, RUNTIME)


async def landlock_command(site: SandboxConfig) -> DenoCommand:
    """Build the command under Landlock (domain/landlock.py). Raises WallsUnavailable."""
    if landlock_abi() == 0:
        raise WallsUnavailable("the kernel has no Landlock")
    prefix = await parent_death_command()
    programs = [site.deno, *await _libraries(site.deno)]
    for path in prefix[:1]:
        programs += [path, *await _libraries(Path(path))]
    rules = rules_for(map(str, programs), (str(site.runtime), "/proc"), _FILES)
    return _confined(site, Walls("landlock", ("seccomp",)), prefix, rules)


async def seccomp_command(site: SandboxConfig) -> DenoCommand:
    """Build the command under a system call filter alone. Raises WallsUnavailable."""
    return _confined(site, Walls("seccomp"), await parent_death_command(), None)


async def unwalled_command(site: SandboxConfig) -> DenoCommand:
    """Build the command with Deno's own permissions alone."""
    launch, prefix = Plain(), await parent_death_command()
    return site.command(NO_WALLS, launch, str(site.deno), str(site.runtime), prefix)


_BEST_FIRST: tuple[tuple[Outer, Build], ...] = (
    ("bubblewrap", bubblewrap_command),
    ("landlock", landlock_command),
    ("seccomp", seccomp_command),
)


async def best_walls(site: SandboxConfig) -> DenoCommand:
    """Return the command with the first walls in which a real process starts; its `walls` list
    why better ones were refused."""
    refused: list[str] = []
    for outer, build in _BEST_FIRST:
        try:
            command = await build(site)
            await verify_walls(command)
        except WallsUnavailable as error:
            refused.append(f"no {outer}: {error}")
        else:
            return replace(command, walls=replace(command.walls, refused=tuple(refused)))
    command = await unwalled_command(site)
    return replace(command, walls=replace(command.walls, refused=tuple(refused)))


async def verify_walls(command: DenoCommand) -> None:
    """Start one process and check its confinement in the kernel. Raises WallsUnavailable."""
    try:
        sandbox = await DenoSandbox.start(command)
    except SandboxUnavailable as error:
        raise WallsUnavailable(str(error)) from error
    try:
        problem = _problem(sandbox.pid, command.walls.outer)
    finally:
        await sandbox.close()
    if problem is not None:
        raise WallsUnavailable(problem)


def _problem(pid: int, outer: Outer) -> str | None:
    try:
        return missing_confinement(Path(f"/proc/{pid}/status").read_text(encoding="utf-8"), outer)
    except OSError as error:
        return str(error)


def _confined(
    site: SandboxConfig, walls: Walls, prefix: tuple[str, ...], rules: Mapping[str, Right] | None
) -> DenoCommand:
    try:
        thread = confined_thread(seccomp_filter(_machine(), forks=True), rules)
    except OSError as error:
        raise WallsUnavailable(str(error)) from error
    return site.command(walls, Plain(thread), str(site.deno), str(site.runtime), prefix)


def _machine() -> Machine:
    machine = platform.machine()
    if sys.platform != "linux" or machine not in MACHINES:
        raise WallsUnavailable(f"no system call filter for {sys.platform} on {machine}")
    return machine


def _loader(program: Path) -> str | None:
    with (
        program.open("rb") as file,
        mmap(file.fileno(), 0, access=ACCESS_READ) as mapped,
        memoryview(mapped) as whole,
    ):
        return loader_of(whole)


async def _libraries(program: Path) -> tuple[str, ...]:
    """List what the kernel and the loader open to start a program; as ldd would, which is a script
    and needs a shell. Raises WallsUnavailable."""
    loader = _loader(program)
    if loader is None:
        return ()
    process = await asyncio.create_subprocess_exec(
        loader, "--list", str(program), stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL
    )
    try:
        async with asyncio.timeout(_LOADER_TIMEOUT_S):
            listing, _ = await process.communicate()
    except TimeoutError as error:
        process.kill()
        raise WallsUnavailable(f"{loader} does not answer") from error
    return libraries(listing.decode(errors="replace"))
