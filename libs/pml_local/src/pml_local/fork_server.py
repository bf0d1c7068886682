"""The fork server as the supervisor sees it: starts Python modules as forks of one process that has
imported what they share (ADR 0042)."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from pml_local.errors import PartFailedError
from pml_local.process import ChildProcess, Command

NAME: Final = "fork-server"
SHARED: Final = ("pml_common.service",)
"""Modules that more than one service imports, by name: none of them starts a thread, reads a
setting or opens a file."""

PROGRAM: Final = Path(__file__).with_name("forking.py")
_LOST: Final = -9
_PATIENCE_S: Final = 60.0
_ROOM: Final = "." * 256
"""Room for the longest title of a service."""


class ForkedProcess:
    """A process that the fork server started and reaps; as `asyncio.subprocess.Process`."""

    stdin = None

    def __init__(self, pid: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self.pid = pid
        self.returncode: int | None = None
        self._writer = writer
        self._ended = asyncio.create_task(self._await_end(reader), name=f"process {pid}")

    async def wait(self) -> int:
        """Wait for its exit and return its exit code."""
        return await asyncio.shield(self._ended)

    def send_signal(self, number: int) -> None:
        """Send it a signal; raises ProcessLookupError when it has ended."""
        if self.returncode is not None:
            raise ProcessLookupError
        os.kill(self.pid, number)

    async def _await_end(self, reader: asyncio.StreamReader) -> int:
        line = await _line(reader)
        self._writer.close()
        # Without an exit code the server has ended, and the kernel has killed its children.
        self.returncode = _LOST if line is None else line
        return self.returncode


class ForkServer:
    """A running fork server; created by `start`."""

    def __init__(self, control: socket.socket, process: ChildProcess) -> None:
        self._control = control
        self.process = process

    @classmethod
    async def start(cls, log: Path, modules: Sequence[str]) -> "ForkServer":
        """Start it; it imports the modules while others start. Its environment is empty."""
        ours, theirs = socket.socketpair()
        with theirs:
            argv = (sys.executable, "-I", str(PROGRAM), _ROOM)
            process = await ChildProcess.start(Command(NAME, argv, log), stdin=theirs.fileno())
        server = cls(ours, process)
        server._send({"path": sys.path, "modules": list(modules)})
        return server

    async def launch(self, command: Command, log: BinaryIO) -> ForkedProcess:
        """Start `python -m module …` as a fork. Raises PartFailedError."""
        program, _, module, *arguments = command.argv
        request = {
            "program": program,
            "module": module,
            "arguments": arguments,
            "descriptors": list(command.pass_fds),
        }
        settings = {
            "environment": dict(command.env),
            "folder": None if command.cwd is None else str(command.cwd),
        }
        ours, theirs = socket.socketpair()
        with theirs:
            self._send(request, theirs.fileno(), log.fileno(), *command.pass_fds)
        reader, writer = await asyncio.open_connection(sock=ours)
        try:
            pid = await self._pid(command.name, reader)
            # The service waits for these: given up before, it ends.
            writer.write(json.dumps(settings).encode())
            writer.write_eof()
        except BaseException:
            writer.close()
            raise
        return ForkedProcess(pid, reader, writer)

    def disconnect(self) -> None:
        """Let it end, with what it started."""
        self._control.close()

    async def stop(self) -> None:
        """End it, once its services are stopped."""
        self.disconnect()
        await self.process.stop()

    def _send(self, message: Mapping[str, object], *descriptors: int) -> None:
        body = json.dumps(message).encode()
        with suppress(OSError):  # it has ended, which the channel reports
            socket.send_fds(self._control, [len(body).to_bytes(4, "big") + body], list(descriptors))

    async def _pid(self, name: str, reader: asyncio.StreamReader) -> int:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                pid = await _line(reader)
        except TimeoutError:
            pid = None
        if pid is None:
            log = self.process.command.log
            raise PartFailedError(name, "could not be forked: the fork server has ended", log)
        return pid


async def _line(reader: asyncio.StreamReader) -> int | None:
    """Read a number on a line of its own; None at the end."""
    with suppress(ConnectionError):
        if line := await reader.readline():
            return int(line)
    return None
