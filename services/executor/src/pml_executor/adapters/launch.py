"""Launchers of sandbox processes: plain, from a confined thread, or inside bubblewrap."""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import IO, Protocol

from typing_extensions import override

from pml_executor.adapters.child import Child
from pml_executor.domain.bubblewrap import descriptors

_END_TIMEOUT_S = 5.0


class Launch(Protocol):
    """Starts a command with an environment. Raises OSError."""

    async def __call__(self, argv: Sequence[str], environment: Mapping[str, str]) -> Child: ...


@dataclass(frozen=True)
class Plain(Launch):
    """Starts it without walls, or under the restrictions of a `thread`."""

    thread: Executor | None = None

    @override
    async def __call__(self, argv: Sequence[str], environment: Mapping[str, str]) -> Child:
        return await Child.start(argv, environment, thread=self.thread)


@dataclass(frozen=True)
class Bubblewrap(Launch):
    """Starts it inside the walls that `command` builds, under the filter `program`."""

    command: tuple[str, ...]
    program: bytes

    @override
    async def __call__(self, argv: Sequence[str], environment: Mapping[str, str]) -> Child:
        start = asyncio.ensure_future(self._start(argv, environment))
        try:
            return await asyncio.shield(start)
        except asyncio.CancelledError:
            # Ended before it supervises its child, bwrap would leave that behind.
            await asyncio.wait({start}, timeout=_END_TIMEOUT_S)
            if not start.done():
                start.cancel()
            elif start.exception() is None:
                await start.result().close(_END_TIMEOUT_S)
            raise

    async def _start(self, argv: Sequence[str], environment: Mapping[str, str]) -> Child:
        program, info = os.pipe(), os.pipe()
        info_pipe = os.fdopen(info[0], "rb", buffering=0)
        given = (program[0], info[1])
        try:
            os.write(program[1], self.program)  # fits in the pipe
            os.close(program[1])
            command = (*self.command, *descriptors(*given), *argv)
            # It inherits the reading side, too: else bwrap, writing after its parent's death, would
            # die of SIGPIPE and leave its child waiting for ever.
            child = await Child.start(command, environment, inherited=(*given, info[0]))
        except BaseException:
            info_pipe.close()
            raise
        finally:
            for descriptor in given:
                os.close(descriptor)
        try:
            pid = await _child_pid(info_pipe)
        except BaseException:
            await child.close(_END_TIMEOUT_S)
            raise
        if pid is not None:
            child.supervises(pid)
        return child


async def _child_pid(pipe: IO[bytes]) -> int | None:
    """Return the id of the process that bwrap has started; None when it failed before.

    Read to the end: bwrap writes in pieces, and a pipe closed too early would end it.
    """
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    try:
        return int(json.loads(await reader.readuntil(b"}"))["child-pid"])
    except asyncio.IncompleteReadError:
        return None
    finally:
        transport.close()
