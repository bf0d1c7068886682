"""A child process that answers requests over stdio: frames of a length (four bytes, big-endian) and
a body, both ways. Its first frame, an empty one, reports that it is warm."""

import asyncio
import math
import os
import resource
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

_HEAD: Final = 4
_MAX_FRAME_BYTES: Final = 256 * 2**20
_BUFFER: Final = 2**20
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


class ChildProcess:
    """Handles one request at a time; unusable after an error or a cancelled request."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.requests = 0

    @classmethod
    async def start(cls, command: ChildCommand) -> "ChildProcess":
        """Start a process and wait until it is warm. Raises ChildLost."""
        try:
            process = await asyncio.create_subprocess_exec(
                *command.argv,
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                env=dict(command.environment),
                limit=_BUFFER,
                start_new_session=True,
            )
        except OSError as error:
            raise ChildLost(f"{command.argv[0]} cannot be started: {error}") from error
        child = cls(process)
        try:
            async with asyncio.timeout(command.start_patience_s):
                await child._read()
        except TimeoutError as error:
            await child.close()
            raise ChildLost(f"not ready within {command.start_patience_s:g} s") from error
        except BaseException:
            await child.close()
            raise
        return child

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it has no known exit code."""
        return self._process.returncode is None

    @property
    def resident_mib(self) -> int:
        """Resident memory; 0 where the system does not report it."""
        try:
            pages = Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1]
        except OSError:
            return 0
        return int(pages) * os.sysconf("SC_PAGE_SIZE") // 2**20

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

    def kill(self) -> None:
        """Send SIGKILL to the process."""
        with suppress(ProcessLookupError):
            self._process.kill()

    async def close(self) -> None:
        """Kill the process and wait for its end."""
        self.kill()
        await self._process.wait()

    async def _read(self) -> bytes:
        stdout = cast(asyncio.StreamReader, self._process.stdout)
        try:
            size = int.from_bytes(await stdout.readexactly(_HEAD), "big")
            if size > _MAX_FRAME_BYTES:
                raise ChildLost(f"an answer of {size:,} bytes was announced")
            return await stdout.readexactly(size)
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise ChildLost("the process ended") from error
