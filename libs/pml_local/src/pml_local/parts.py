"""Parts of the stack and their start: prepare, start, await readiness."""

import asyncio
import errno
import os
from typing import Protocol, runtime_checkable

from pml_local.errors import PartFailedError, PortLostError, PortTakenError, tail_of
from pml_local.ports import is_free
from pml_local.process import ChildProcess, Command

POLL_SECONDS = 0.03
_ADDRESS_IN_USE = os.strerror(errno.EADDRINUSE).lower()


class Part(Protocol):
    """A server of the stack; it may be started any number of times, on the same port."""

    @property
    def name(self) -> str:
        """Unique in its stack."""
        ...

    @property
    def port(self) -> int:
        """The port it listens on, stable across restarts."""
        ...

    @property
    def start_within(self) -> float:
        """Seconds allowed for becoming ready."""
        ...

    async def prepare(self) -> Command:
        """Create the files it needs and return its command; called before every start."""
        ...

    async def problem(self, pid: int) -> str | None:
        """Run one bounded probe: the reason why the process is not ready, or None."""
        ...


@runtime_checkable
class Movable(Protocol):
    """A part that may choose another port while its port is not yet published."""

    def move(self) -> bool:
        """Choose another port; False when the port was given explicitly."""
        ...


@runtime_checkable
class Settling(Protocol):
    """A part with work to do after each start, before others may rely on it."""

    async def settle(self) -> None:
        """Do that work, on the running process. Raises PartFailedError."""
        ...


MOST_PORTS = 5


async def start_on_free_port(part: Part) -> ChildProcess:
    """Start a part whose port is not yet published, choosing another port, up to MOST_PORTS times,
    when a process took the first one in between.

    Raises PartFailedError, or PortTakenError for a port that was given explicitly.
    """
    for _ in range(MOST_PORTS - 1):
        try:
            return await start_part(part)
        except PortLostError as error:
            if not (isinstance(part, Movable) and part.move()):
                raise PortTakenError(part.port) from error
    return await start_part(part)


async def start_part(part: Part) -> ChildProcess:
    """Start it, wait until it is ready, and settle it. Raises PartFailedError with no process left
    running, PortLostError where another process listens on its port."""
    command = await part.prepare()
    process = await ChildProcess.start(command)
    try:
        await await_ready(part, process)
        if isinstance(part, Settling):
            await part.settle()
    except BaseException:
        await process.stop()
        raise
    return process


async def await_ready(part: Part, process: ChildProcess) -> None:
    """Poll the part until it answers. Raises PartFailedError when it exits first or takes too
    long."""
    problem: str | None = None
    ended = asyncio.create_task(process.wait())
    try:
        async with asyncio.timeout(part.start_within):
            while (problem := await _problem(part, process.pid, ended)) is not None:
                if process.returncode is not None:
                    raise _exited(part, process)
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        reason = f"was not ready within {part.start_within:g} s ({problem})"
        raise PartFailedError(part.name, reason, process.command.log) from None
    finally:
        ended.cancel()


def _exited(part: Part, process: ChildProcess) -> PartFailedError:
    """Build the error of a process that exited before it was ready. The process that took its port
    may have freed it since: what the part logged counts as well."""
    reason = f"ended with code {process.returncode} before it was ready"
    log = process.command.log
    lost = part.port and not process.command.pass_fds
    if lost and (not is_free(part.port) or _ADDRESS_IN_USE in "\n".join(tail_of(log)).lower()):
        return PortLostError(part.name, f"{reason}: port {part.port} is taken", log)
    return PartFailedError(part.name, reason, log)


async def _problem(part: Part, pid: int, ended: asyncio.Task[int]) -> str | None:
    """Probe it until it exits: on a socket that is kept open, a probe would otherwise wait."""
    probe = asyncio.create_task(part.problem(pid))
    try:
        await asyncio.wait({probe, ended}, return_when=asyncio.FIRST_COMPLETED)
        return probe.result() if probe.done() else "it has exited"
    finally:
        probe.cancel()
