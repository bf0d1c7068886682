"""Program of the fork server: forks services from one process that has imported what they share.

Run as a script, by path, with an empty environment and a socket as its standard input:
`python -I forking.py <room for the title>`. The socket first carries a `Preload`, then a request
for each service with three descriptors: a channel of the service's own, its log, and the sockets
that it inherits. The server writes the pid into the channel, later the exit code; the service reads
its settings from it, which the server never sees. When the socket closes, the server kills what is
left and ends.

Only the standard library is imported here: anything else is a preload.
"""

import ctypes
import gc
import json
import os
import runpy
import select
import signal
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

HEAD: Final = 4
CANNOT_START: Final = 125
_PR_SET_PDEATHSIG: Final = 1
_MAX_DESCRIPTORS: Final = 16
_ABOVE_ALL: Final = 200
"""A descriptor above those that a service is given."""


class NotForkable(Exception):
    """The process has threads, which a fork would not copy."""


@dataclass(frozen=True)
class Service:
    """A service to run in this process, the fork's child."""

    module: str
    arguments: Sequence[str]

    def run(self) -> None:
        """Run it as `python -m` does."""
        sys.argv = [self.module, *self.arguments]
        named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        sys.path[:0] = [os.getcwd(), *filter(None, named)]  # noqa: PTH109 - a string, as `-m` has
        runpy.run_module(self.module, run_name="__main__", alter_sys=True)


class Server:
    """The parent: its children by pid, each with the channel for its exit code."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._children: dict[int, socket.socket] = {}
        self._wake, self._woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def serve(self) -> Service | None:
        """Fork until the supervisor is gone. Returns None in the parent, the service in a child."""
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _interrupt)
        while True:
            ready, _, _ = select.select([self._control, self._wake], [], [])
            if self._wake in ready:
                os.read(self._wake, 4096)
                self._reap()
            if self._control in ready:
                request = receive(self._control)
                if request is None:
                    self._kill()
                    return None
                if (service := self._fork(*request)) is not None:
                    return service

    def _fork(self, request: dict[str, Any], descriptors: Sequence[int]) -> Service | None:
        """Fork one service. Returns None in the parent."""
        server = os.getpid()
        channel, log, *inherited = descriptors
        pid = os.fork()
        if pid == 0:
            self._forget()
            _become(server, channel, log, dict(zip(request["descriptors"], inherited, strict=True)))
            title = [request["program"], "-m", request["module"], *request["arguments"]]
            set_title(" ".join(title))
            return Service(request["module"], request["arguments"])
        for descriptor in (log, *inherited):
            os.close(descriptor)
        self._children[pid] = socket.socket(fileno=channel)
        self._tell(pid, pid)
        return None

    def _forget(self) -> None:
        """Undo in a child what belongs to the parent alone."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for descriptor in (self._wake, self._woken):
            os.close(descriptor)
        self._control.close()
        for channel in self._children.values():
            channel.close()
        self._children.clear()

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0] != 0:
                pid, status = ended
                self._tell(pid, os.waitstatus_to_exitcode(status))
                self._children.pop(pid).close()

    def _tell(self, pid: int, number: int) -> None:
        """Write a line into a child's channel; the supervisor may have closed it."""
        with suppress(OSError):
            self._children[pid].sendall(f"{number}\n".encode())

    def _kill(self) -> None:
        for pid in self._children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _interrupt(_number: int, _frame: object) -> None:
    """Handle a signal for whose wake-up alone there is a handler."""


def receive(control: socket.socket) -> tuple[dict[str, Any], Sequence[int]] | None:
    """Read a message with its descriptors: its length in four bytes, then JSON. None at the end."""
    head, descriptors, _, _ = socket.recv_fds(control, HEAD, _MAX_DESCRIPTORS)
    if not head:
        return None
    head += _exactly(control, HEAD - len(head))
    return json.loads(_exactly(control, int.from_bytes(head, "big"))), descriptors


def _exactly(control: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = control.recv(size - len(parts))
        if not part:
            raise EOFError("the supervisor is gone")
        parts += part
    return bytes(parts)


def _become(server: int, channel: int, log: int, inherited: dict[int, int]) -> None:
    """Make a child a service's process: its session, death signal, output, settings, sockets."""
    os.setsid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != server:
            os._exit(CANNOT_START)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for old, new in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(old, new)
    os.close(nothing)
    os.close(log)
    settings = _settings(channel)
    aside = {number: _move(old, _ABOVE_ALL) for number, old in inherited.items()}
    for number, old in aside.items():
        os.dup2(old, number)
        os.close(old)
    os.environ.clear()
    os.environ.update(settings["environment"])
    time.tzset()
    if settings["folder"] is not None:
        os.chdir(settings["folder"])
    gc.enable()


def _settings(channel: int) -> dict[str, Any]:
    """Read a service's settings to their end; without them, the supervisor has given it up."""
    with socket.socket(fileno=channel) as opened:
        parts = bytearray()
        while part := opened.recv(65_536):
            parts += part
    try:
        return json.loads(parts)
    except ValueError:
        os._exit(CANNOT_START)


def _move(old: int, least: int) -> int:
    """Move a descriptor to the first free number from `least`."""
    import fcntl

    new = fcntl.fcntl(old, fcntl.F_DUPFD_CLOEXEC, least)
    os.close(old)
    return new


def set_title(title: str) -> None:
    """Show a title as this process's arguments, as far as there is room. A last byte other than
    zero makes the kernel show the text up to its first zero, instead of every argument."""
    if sys.platform != "linux":
        return
    stat = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace")
    start, end = map(int, stat.rpartition(")")[2].split()[45:47])
    room = end - start - 2
    if start and room > 0:
        text = os.fsencode(title)[:room]
        ctypes.memmove(start, text + bytes(room + 1 - len(text)) + b".", end - start)


def preload(names: Sequence[str]) -> None:
    """Import modules, and keep the collector from ever walking them. Raises NotForkable."""
    gc.disable()
    for name in names:
        import_module(name)
    tasks = Path("/proc/self/task")
    if tasks.exists() and len(threads := list(tasks.iterdir())) > 1:
        raise NotForkable(f"{len(threads)} threads after the import of {', '.join(names)}")
    gc.collect()
    gc.freeze()


def main() -> None:
    """Preload, fork, and run in each child its service."""
    set_title(f"{sys.executable} -I {__file__}")
    control = socket.socket(fileno=os.dup(0))
    first = receive(control)
    if first is None:
        return
    sys.path[:] = first[0]["path"]
    preload(first[0]["modules"])
    service = Server(control).serve()
    if service is not None:
        service.run()


if __name__ == "__main__":
    main()
