"""Writes the stderr of stdio servers to the log, line by line."""

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
async def stderr_log(server: str, on_line: Callable[[str], None]) -> AsyncGenerator[TextIO]:
    """Open a file to start a server's process with, to be closed once it runs.

    Each line written to it is logged under the server's name and passed to `on_line`.
    """
    reading, writing = os.pipe()

    def log_line(line: str) -> None:
        log.info("%s: %s", server, visible(line))
        on_line(line)

    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: _LineSplitter(log_line), os.fdopen(reading, "rb", buffering=0)
    )
    try:
        with os.fdopen(writing, "w") as errlog:
            yield errlog
    finally:
        transport.close()


class _LineSplitter(asyncio.Protocol):
    """Splits a pipe's bytes into lines; of one that is too long, only the beginning is emitted."""

    def __init__(self, on_line: Callable[[str], None]) -> None:
        self._on_line = on_line
        self._rest = b""
        self._is_cut = False

    def data_received(self, data: bytes) -> None:
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._more(line)
            self._end()
        self._more(rest)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()

    def _more(self, part: bytes) -> None:
        if self._is_cut:
            return
        self._rest += part[: _LONGEST_LINE + 1 - len(self._rest)]
        if len(self._rest) > _LONGEST_LINE:
            self._emit(self._rest[:_LONGEST_LINE], " (cut)")
            self._rest, self._is_cut = b"", True

    def _end(self) -> None:
        self._emit(self._rest)
        self._rest, self._is_cut = b"", False

    def _emit(self, line: bytes, cut: str = "") -> None:
        text = line.decode(errors="replace").strip()
        if text:
            self._on_line(f"{text}{cut}")
