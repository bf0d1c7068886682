"""What a part of the stack is, and how it is brought up: prepare, start, await readiness."""

import asyncio
from typing import Protocol

from pml_local.errors import PartFailedError
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


async def start_part(part: Part) -> ChildProcess:
    """Start it and wait until it is ready; raises PartFailedError, with nothing left running."""
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
    try:
        async with asyncio.timeout(part.start_within):
            while (problem := await part.problem(process.pid)) is not None:
                if process.returncode is not None:
                    reason = f"ended with code {process.returncode} before it was ready"
                    raise PartFailedError(part.name, reason, process.command.log)
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        reason = f"was not ready within {part.start_within:g} s ({problem})"
        raise PartFailedError(part.name, reason, process.command.log) from None
