"""What stdio servers print on their stderr: into our log, line by line."""

import asyncio
import logging
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import TextIO

from pml_common.text.visible import visible

log = logging.getLogger(__name__)
_LONGEST_LINE = 2000


@asynccontextmanager
async def stderr_log(server: str, heard: Callable[[str], None]) -> AsyncGenerator[TextIO]:
    """A file to start a server's process with, and to close once it runs.

    Each line written to it is logged under the server's name and given to `heard`.
    """
    reading, writing = os.pipe()

    def take(line: str) -> None:
        log.info("%s: %s", server, visible(line))
        heard(line)

    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: _Lines(take), os.fdopen(reading, "rb", buffering=0)
    )
    try:
        with os.fdopen(writing, "w") as errlog:
            yield errlog
    finally:
        transport.close()


class _Lines(asyncio.Protocol):
    """Cuts a pipe's bytes into lines; of one that is too long its beginning is told, once."""

    def __init__(self, take: Callable[[str], None]) -> None:
        self._take = take
        self._rest = b""
        self._told = False

    def data_received(self, data: bytes) -> None:
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._more(line)
            self._end()
        self._more(rest)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()

    def _more(self, part: bytes) -> None:
        if self._told:
            return
        self._rest += part[: _LONGEST_LINE + 1 - len(self._rest)]
        if len(self._rest) > _LONGEST_LINE:
            self._tell(self._rest[:_LONGEST_LINE], " (cut)")
            self._rest, self._told = b"", True

    def _end(self) -> None:
        self._tell(self._rest)
        self._rest, self._told = b"", False

    def _tell(self, line: bytes, cut: str = "") -> None:
        text = line.decode(errors="replace").strip()
        if text:
            self._take(f"{text}{cut}")
