"""A child process with pipes on the event loop.

Not asyncio's own: uvloop forks, which copies the page tables of the executor and blocks its loop
for some 4 ms at every start; `subprocess` uses vfork and takes a tenth of that.
"""

import asyncio
import os
import signal
import subprocess
import sys
from asyncio import BaseProtocol, ReadTransport, StreamReader, StreamReaderProtocol, WriteTransport
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, cast

_LIMIT_BYTES = 2**18
_SIGNALLED = 128


class Child:
    """A child process: `stdout` and `stderr` are stream readers, `write` never waits, `close` ends
    the process and its pipes.

    A process that only supervises another one (bubblewrap) is given that one's id by `supervises`:
    then `pid`, `kill` and `close` refer to the other, and its supervisor ends with it.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        stdin: WriteTransport,
        outputs: Sequence[tuple[StreamReader, ReadTransport]],
    ) -> None:
        self._process = process
        self._stdin = stdin
        self._transports = [transport for _, transport in outputs]
        self.stdout, self.stderr = (reader for reader, _ in outputs)
        self._watched: int | None = None
        self._watched_descriptor: int | None = None

    @classmethod
    async def start(
        cls,
        argv: Sequence[str],
        environment: Mapping[str, str],
        *,
        inherited: Sequence[int] = (),
        thread: Executor | None = None,
    ) -> "Child":
        """Start a program at the root folder, in a session of its own, so that a Ctrl-C at the
        terminal reaches only its parent. `inherited` descriptors stay open in it; started on a
        `thread`, it inherits that thread's restrictions. Raises OSError."""
        pipe = subprocess.PIPE
        popen = partial(
            subprocess.Popen[bytes],
            argv,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env=environment,
            cwd="/",
            start_new_session=True,
            bufsize=0,
            pass_fds=inherited,
        )
        # Blocks the loop for half a millisecond, so that a start cannot be cancelled halfway.
        process = popen() if thread is None else thread.submit(popen).result()
        pipes = [
            cast("IO[bytes]", pipe) for pipe in (process.stdin, process.stdout, process.stderr)
        ]
        outputs: list[tuple[StreamReader, ReadTransport]] = []
        loop = asyncio.get_running_loop()
        writer = None
        try:
            writer, _ = await loop.connect_write_pipe(BaseProtocol, pipes.pop(0))
            while pipes:
                outputs.append(await _reader(pipes.pop(0)))
            return cls(process, writer, outputs)
        except BaseException:
            process.kill()
            process.wait()
            if writer is not None:
                writer.close()
            for pipe in pipes:  # the one that was being connected is already closed
                pipe.close()
            for _, transport in outputs:
                transport.close()
            raise

    def supervises(self, pid: int) -> None:
        """Make `pid`, a child of this process, the process meant; it may be gone already."""
        with suppress(ProcessLookupError):
            descriptor = os.pidfd_open(pid)
            if _parent(pid) == self._process.pid:
                self._watched, self._watched_descriptor = pid, descriptor
            else:
                os.close(descriptor)

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._watched or self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        return self._status(self._process.poll())

    def write(self, data: bytes) -> None:
        """Queue data for stdin; dropped if the process has ended."""
        self._stdin.write(data)

    def kill(self) -> None:
        """Send SIGKILL, unless the process has ended."""
        with suppress(ProcessLookupError):
            if self._watched_descriptor is not None:
                signal.pidfd_send_signal(self._watched_descriptor, signal.SIGKILL)
            elif self._watched is None:
                self._process.kill()

    async def ended(self, timeout: float) -> int:
        """Wait for the end of the process and return its exit status. Raises TimeoutError."""
        if sys.platform != "linux" or self._process.poll() is not None:
            status = await asyncio.to_thread(self._wait, timeout)
        else:
            async with asyncio.timeout(timeout):
                # The descriptor turns readable at the end, where subprocess would poll.
                descriptor = os.pidfd_open(self._process.pid)
                try:
                    await _readable(descriptor)
                finally:
                    os.close(descriptor)
            status = self._wait(timeout)
        return self._status(status) or 0

    def _wait(self, timeout: float) -> int:
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(str(error)) from error

    def _status(self, status: int | None) -> int | None:
        if self._watched and status is not None and status > _SIGNALLED:
            return _SIGNALLED - status  # a supervisor exits with 128 + the signal's number
        return status

    async def close(self, timeout: float) -> None:
        """Kill the process, wait for its end, and close its pipes. Raises TimeoutError."""
        self.kill()
        self._stdin.close()
        try:
            await self.ended(timeout)
        except TimeoutError:
            self._process.kill()
            raise
        finally:
            for transport in self._transports:
                transport.close()
            self._forget()

    def _forget(self) -> None:
        if self._watched_descriptor is not None:
            os.close(self._watched_descriptor)
            self._watched_descriptor = None


async def _reader(pipe: IO[bytes]) -> tuple[StreamReader, ReadTransport]:
    reader = StreamReader(limit=_LIMIT_BYTES)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: StreamReaderProtocol(reader), pipe
    )
    return reader, transport


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(descriptor)


def _parent(pid: int) -> int | None:
    """Return the id of a process's parent; None when it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[1])
