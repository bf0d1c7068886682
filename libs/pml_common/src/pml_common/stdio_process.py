"""A child process that is used over its standard input and output."""

import asyncio
import os
from abc import ABC, abstractmethod
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Final, Self

_BUFFER: Final = 2**20


class StdioProcess(ABC):
    """A child in a session of its own. Subclasses say what is exchanged with it."""

    lost: ClassVar[type[Exception]] = OSError
    """Raised where the process cannot be used."""

    def __init__(self, process: Process) -> None:
        self._process = process

    @classmethod
    async def _start(
        cls,
        argv: Sequence[str],
        environment: Mapping[str, str],
        patience_s: float,
        folder: Path | None = None,
    ) -> Self:
        """Start a process and wait until it is ready, at most `patience_s`; `environment` is its
        whole environment. Raises `lost`."""
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=PIPE,
                stdout=PIPE,
                stderr=DEVNULL,
                env=dict(environment),
                cwd=folder,
                limit=_BUFFER,
                start_new_session=True,
            )
        except OSError as error:
            raise cls.lost(f"{argv[0]} cannot be started: {error}") from error
        child = cls(process)
        try:
            async with asyncio.timeout(patience_s):
                await child._until_ready()
        except TimeoutError as error:
            await child.close()
            raise cls.lost(f"not ready within {patience_s:g} s") from error
        except BaseException:
            await child.close()
            raise
        return child

    @abstractmethod
    async def _until_ready(self) -> None:
        """Wait until the process can be used."""

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def resident_mib(self) -> int:
        """Resident memory; 0 where the system does not report it."""
        try:
            pages = Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1]
        except OSError:
            return 0
        return int(pages) * os.sysconf("SC_PAGE_SIZE") // 2**20

    def kill(self) -> None:
        """Send SIGKILL to the process."""
        with suppress(ProcessLookupError):
            self._process.kill()

    async def close(self) -> None:
        """Kill the process and wait for its end."""
        self.kill()
        await self._process.wait()
