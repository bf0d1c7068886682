"""What a part of the stack is, and how it is brought up: prepare, start, await readiness."""

import asyncio
from typing import Protocol, runtime_checkable

from pml_local.errors import PartFailedError, PortLostError, PortTakenError
from pml_local.ports import is_free
from pml_local.process import ChildProcess, Command

POLL_SECONDS = 0.01


class Part(Protocol):
    """A server of the stack; started any number of times, on the same port."""

    @property
    def name(self) -> str:
        """Unique in its stack."""
        ...

    @property
    def port(self) -> int:
        """Where it listens, the same over all its restarts."""
        ...

    @property
    def start_within(self) -> float:
        """Seconds it may take to become ready."""
        ...

    async def prepare(self) -> Command:
        """Make ready what it needs on disk and say how to run it; runs before every start."""
        ...

    async def problem(self, pid: int) -> str | None:
        """One probe, bounded: what keeps the process from being ready, or None."""
        ...


@runtime_checkable
class Movable(Protocol):
    """A part that may choose another port as long as nobody was told of the first."""

    def move(self) -> bool:
        """Choose another port; False where somebody named the port that it has."""
        ...


MOST_PORTS = 5


async def start_somewhere(part: Part) -> ChildProcess:
    """As `start_part`, for a part whose port nobody knows yet: one that another process took
    between the choice and the start is replaced by another, a few times.

    Raises PartFailedError, PortTakenError for a port that was named.
    """
    for _ in range(MOST_PORTS - 1):
        try:
            return await start_part(part)
        except PortLostError as error:
            if not (isinstance(part, Movable) and part.move()):
                raise PortTakenError(part.port) from error
    return await start_part(part)


async def start_part(part: Part) -> ChildProcess:
    """Start it and wait until it is ready; raises PartFailedError, with nothing left running:
    PortLostError where another process listens on its port."""
    command = await part.prepare()
    process = await ChildProcess.start(command)
    try:
        await await_ready(part, process)
    except BaseException:
        await process.stop()
        raise
    return process


async def await_ready(part: Part, process: ChildProcess) -> None:
    """Poll the part until it answers; raises PartFailedError when it ends first or takes long."""
    problem: str | None = None
    ended = asyncio.create_task(process.wait())
    try:
        async with asyncio.timeout(part.start_within):
            while (problem := await _problem(part, process.pid, ended)) is not None:
                if process.returncode is not None:
                    reason = f"ended with code {process.returncode} before it was ready"
                    if part.port and not process.command.pass_fds and not is_free(part.port):
                        reason = f"{reason}: port {part.port} is taken"
                        raise PortLostError(part.name, reason, process.command.log)
                    raise PartFailedError(part.name, reason, process.command.log)
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        reason = f"was not ready within {part.start_within:g} s ({problem})"
        raise PartFailedError(part.name, reason, process.command.log) from None
    finally:
        ended.cancel()


async def _problem(part: Part, pid: int, ended: asyncio.Task[int]) -> str | None:
    """Probe it, no longer than it runs: on a socket that is held, nobody else answers."""
    probe = asyncio.create_task(part.problem(pid))
    try:
        await asyncio.wait({probe, ended}, return_when=asyncio.FIRST_COMPLETED)
        return probe.result() if probe.done() else "it has ended"
    finally:
        probe.cancel()
