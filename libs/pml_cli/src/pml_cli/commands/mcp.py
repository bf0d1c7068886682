"""`pml mcp`: an MCP server on stdio for clients that know no HTTP."""

import asyncio
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import httpx2

from pml_cli.bridge.bridge import Bridge, NoGateway
from pml_cli.bridge.messages import Json
from pml_local.process import ChildProcess, Command
from pml_local.state import read_state

log = logging.getLogger(__name__)

_STARTS_WITHIN_S: Final = 60.0
_COMES_BACK_WITHIN_S: Final = 30.0
_STOPS_WITHIN_S: Final = 20.0
_LOOK_EVERY_S: Final = 0.2
_PML: Final = (sys.executable, "-c", "from pml_cli.app import main; main()")
_LOG: Final = "mcp-started.log"


class Stack:
    """The gateway that the bridge uses: that of `url`, else the stack of the folder `home`, which
    is started by `program` where none runs, if that is wanted."""

    def __init__(
        self, home: Path, url: str | None, *, start: bool, program: Sequence[str] = _PML
    ) -> None:
        self._program = program
        self._home = home
        self._url = url
        self._start = start and url is None
        self._known: str | None = None
        self._patience_s = _STARTS_WITHIN_S if self._start else 0.0
        self._started: ChildProcess | None = None
        self._looking = asyncio.Lock()

    async def locate(self, failed: str | None = None) -> str:
        """Return the address of a gateway that answers; `failed` is one that did not. Raises
        NoGateway."""
        if self._known == failed:
            self._known = None
        if self._known is not None:
            return self._known
        async with self._looking:
            if self._known is None:
                self._known = await self._found()
                self._patience_s = _STARTS_WITHIN_S if self._start else _COMES_BACK_WITHIN_S
            return self._known

    async def stop(self) -> None:
        """Stop the stack, if this started it."""
        if self._started is not None:
            await self._started.stop()

    async def _found(self) -> str:
        """Look for a gateway until one answers. Raises NoGateway: from then on one that is not
        there is not waited for, until it was there again."""
        if self._start:
            await self._begin()
        until = asyncio.get_running_loop().time() + self._patience_s
        while (url := await self._answering()) is None:
            exited = self._started is not None and self._started.returncode is not None
            if exited or asyncio.get_running_loop().time() >= until:
                self._patience_s = _STARTS_WITHIN_S if self._start else 0.0
                raise NoGateway(self._why_none())
            await asyncio.sleep(_LOOK_EVERY_S)
        return url

    async def _answering(self) -> str | None:
        url = self._url
        if url is None:
            state = read_state(self._home)
            url = None if state is None else state.url
        if url is None:
            return None
        async with httpx2.AsyncClient(timeout=5.0) as http:
            try:
                await http.get(f"{url}/livez")
            except httpx2.HTTPError:
                return None
        return url

    async def _begin(self) -> None:
        if self._started is not None and self._started.returncode is None:
            return
        if read_state(self._home) is not None:
            return
        self._home.mkdir(parents=True, exist_ok=True)
        command = Command(
            "pml up",
            [*self._program, "up", "--home", str(self._home)],
            log=self._home / _LOG,
            env=os.environ,
            stop_within=_STOPS_WITHIN_S,
            orphan_signal=signal.SIGTERM,
        )
        self._started = await ChildProcess.start(command)
        log.warning("a stack is started on %s", self._home)

    def _why_none(self) -> str:
        if self._url is not None:
            return f"no PML gateway answers at {self._url}"
        if self._start:
            return f"the stack on {self._home} does not start: see {self._home / _LOG}"
        return (
            f"no PML stack runs on {self._home}: run `pml up --home {self._home}`, or give "
            "`pml mcp` the option --start"
        )


def serve(home: Path, url: str | None, *, start: bool) -> None:
    """Serve until the client closes its end. Standard output has messages alone."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="pml mcp: %(message)s")
    asyncio.run(_serve(home, url, start=start))


async def _serve(home: Path, url: str | None, *, start: bool) -> None:
    stack, writing = Stack(home, url, start=start), asyncio.Lock()

    async def write(message: Json) -> None:
        line = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        async with writing:
            await asyncio.to_thread(_write, line)

    bridge, lines = Bridge(stack.locate, write), _lines_of_stdin()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, lines.put_nowait, b"")
    try:
        while line := await lines.get():
            if line.strip():
                await bridge.take(line)
    finally:
        await bridge.close()
        await stack.stop()


def _lines_of_stdin() -> "asyncio.Queue[bytes]":
    """Return a queue of the lines of standard input; an empty one is its end. The thread that reads
    keeps no process alive."""
    lines, loop = asyncio.Queue[bytes](), asyncio.get_running_loop()

    def read() -> None:
        for line in sys.stdin.buffer:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(lines.put_nowait, b"")

    threading.Thread(target=read, name="stdin", daemon=True).start()
    return lines


def _write(line: bytes) -> None:
    try:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # The client has gone; nothing more is written, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
