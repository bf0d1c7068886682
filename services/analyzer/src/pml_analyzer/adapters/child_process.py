"""A child process that answers requests over stdio: frames of a length (four bytes, big-endian) and
a body, both ways. Its first frame, an empty one, reports that it is warm."""

import asyncio
import math
import os
import resource
from asyncio.subprocess import Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

from typing_extensions import override

from pml_common.stdio_process import StdioProcess

_HEAD: Final = 4
_MAX_FRAME_BYTES: Final = 256 * 2**20
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_MARGIN_S: Final = 2


class ChildLost(Exception):
    """The process ended, or its output is invalid; the message says which."""


@dataclass(frozen=True)
class ChildCommand:
    """The command line of a process. `environment` is its whole environment."""

    argv: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    start_patience_s: float = 20.0


class ChildProcess(StdioProcess):
    """Handles one request at a time; unusable after an error or a cancelled request."""

    lost = ChildLost

    def __init__(self, process: Process) -> None:
        super().__init__(process)
        self.requests = 0

    @classmethod
    async def start(cls, command: ChildCommand) -> "ChildProcess":
        """Start a process and wait until it is warm. Raises ChildLost."""
        return await cls._start(command.argv, command.environment, command.start_patience_s)

    @override
    async def _until_ready(self) -> None:
        await self._read()

    @property
    def is_alive(self) -> bool:
        """Whether it has no known exit code."""
        return self._process.returncode is None

    def processor_s(self) -> float | None:
        """Return the processor time it has used; None where the system does not report it."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        after_name = stat.rpartition(")")[2].split()
        return (int(after_name[11]) + int(after_name[12])) / _TICKS

    def limit_processor_time(self, seconds: float) -> None:
        """Have the kernel end the process after this much more processor time, even without its
        parent."""
        used = self.processor_s()
        if used is not None:
            until = math.ceil(used + seconds) + _MARGIN_S
            with suppress(OSError):
                resource.prlimit(self.pid, resource.RLIMIT_CPU, (until, resource.RLIM_INFINITY))

    async def request(self, body: bytes) -> bytes:
        """Send a request and return the answer. Raises ChildLost."""
        self.requests += 1
        stdin = cast(asyncio.StreamWriter, self._process.stdin)
        try:
            stdin.write(len(body).to_bytes(_HEAD, "big") + body)
            await stdin.drain()
        except ConnectionError as error:
            raise ChildLost("the process ended") from error
        return await self._read()

    async def _read(self) -> bytes:
        stdout = cast(asyncio.StreamReader, self._process.stdout)
        try:
            size = int.from_bytes(await stdout.readexactly(_HEAD), "big")
            if size > _MAX_FRAME_BYTES:
                raise ChildLost(f"an answer of {size:,} bytes was announced")
            return await stdout.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise ChildLost("the process ended") from error
