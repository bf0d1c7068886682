"""A child process with pipes on the event loop.

Not asyncio's own: uvloop forks, which copies the page tables of the executor and holds its loop up
for some 4 ms at every start; `subprocess` uses vfork and takes a tenth of that.
"""

import asyncio
import os
import subprocess
import sys
from asyncio import BaseProtocol, ReadTransport, StreamReader, StreamReaderProtocol, WriteTransport
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, cast

_LIMIT_BYTES = 2**18


class Child:
    """`stdout` and `stderr` are read, `write` never waits; `close` ends it all."""

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

    @classmethod
    async def start(cls, argv: Sequence[str], environment: Mapping[str, str]) -> "Child":
        """Start a program at the root folder, in a session of its own, so that a Ctrl-C at the
        terminal is left to its parent. Raises OSError."""
        pipe = subprocess.PIPE
        process = subprocess.Popen(  # noqa: S603, ASYNC220 - see above; returns in half a millisecond
            argv,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env=environment,
            cwd="/",
            start_new_session=True,
            bufsize=0,
        )
        stdin, stdout, stderr = (
            cast("IO[bytes]", p) for p in (process.stdin, process.stdout, process.stderr)
        )
        loop = asyncio.get_running_loop()
        try:
            writer, _ = await loop.connect_write_pipe(BaseProtocol, stdin)
            return cls(process, writer, [await _reader(stdout), await _reader(stderr)])
        except BaseException:
            process.kill()
            process.wait()
            raise

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        return self._process.poll()

    def write(self, data: bytes) -> None:
        """Hand data over; what a dead process no longer reads is dropped."""
        self._stdin.write(data)

    def kill(self) -> None:
        """End it with SIGKILL, unless it has ended."""
        with suppress(ProcessLookupError):
            self._process.kill()

    async def ended(self, timeout: float) -> int:
        """Its exit status once it has ended. Raises TimeoutError."""
        if sys.platform != "linux" or self._process.poll() is not None:
            return await asyncio.to_thread(self._wait, timeout)
        # A descriptor that turns readable, where subprocess would sleep between looks.
        descriptor = os.pidfd_open(self._process.pid)
        loop = asyncio.get_running_loop()
        gone = asyncio.Event()
        loop.add_reader(descriptor, gone.set)
        try:
            async with asyncio.timeout(timeout):
                await gone.wait()
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)
        return self._wait(timeout)

    def _wait(self, timeout: float) -> int:
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise TimeoutError(str(error)) from error

    async def close(self, timeout: float) -> None:
        """Kill it, wait for its end, and let go of its pipes. Raises TimeoutError."""
        self.kill()
        self._stdin.close()
        try:
            await self.ended(timeout)
        finally:
            for transport in self._transports:
                transport.close()


async def _reader(pipe: IO[bytes]) -> tuple[StreamReader, ReadTransport]:
    reader = StreamReader(limit=_LIMIT_BYTES)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: StreamReaderProtocol(reader), pipe
    )
    return reader, transport
