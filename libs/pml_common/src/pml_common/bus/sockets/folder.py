"""The folder of one service's sockets on this machine: one socket for each replica.

The folder belongs to our user and is closed to all others. Sockets are addressed relative to the
open folder (`/proc/self/fd`): their paths may be longer than the 107 bytes of a socket's address,
and nobody can exchange the folder between its check and its use. Linux only.
"""

import os
import socket
import stat
import struct
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

_SUFFIX = ".sock"
_BACKLOG = 64
_CREDENTIALS = struct.Struct("3i")  # struct ucred: pid, uid, gid


class SocketUnusable(Exception):
    """A socket cannot be used; the message says why."""


class SocketFolder:
    """The folder at `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def names(self) -> list[str]:
        """Return the names of the sockets, in use or left behind; none without the folder. Raises
        SocketUnusable."""
        if not self.path.exists():
            return []
        with self._opened() as folder:
            return _names(folder)

    def connect(self, name: str) -> socket.socket:
        """Connect without waiting to a socket that a process of our user listens on. Raises
        SocketUnusable."""
        with self._opened() as folder:
            found = _connected(folder, name)
        try:
            require_own(found)
        except SocketUnusable:
            found.close()
            raise
        return found

    def listen(self, name: str) -> socket.socket:
        """Create the folder if it is missing, remove sockets that nobody listens on, and listen on
        one of this name. Raises SocketUnusable."""
        with suppress(FileExistsError, OSError):
            self.path.mkdir(mode=0o700, parents=True)
        with self._opened() as folder:
            _remove_unused(folder)
            listening = _socket()
            aside = f"{name}.new"
            try:
                listening.bind(_address(folder, aside))
                os.chmod(aside, 0o600, dir_fd=folder)
                listening.listen(_BACKLOG)
                # Named only now: a socket of this suffix that refuses connections is left behind.
                os.rename(aside, name + _SUFFIX, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError as error:
                listening.close()
                raise SocketUnusable(f"cannot listen in {self.path}: {error}") from error
            return listening

    def remove(self, name: str) -> None:
        """Remove the socket of this name, if it is still there."""
        with suppress(OSError):
            (self.path / (name + _SUFFIX)).unlink()

    @contextmanager
    def _opened(self) -> Generator[int]:
        """Open the folder. Raises SocketUnusable if others could have put something into it."""
        try:
            folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError as error:
            raise SocketUnusable(f"{self.path}: {error}") from error
        try:
            found = os.fstat(folder)
            if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
                raise SocketUnusable(f"{self.path} is not our user's alone (mode 0700)")
            yield folder
        finally:
            os.close(folder)


def require_own(connected: socket.socket) -> int:
    """Return the process id at the other end. Raises SocketUnusable if it is another user's."""
    pid, uid, _ = _CREDENTIALS.unpack(
        connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    )
    if uid != os.geteuid():
        raise SocketUnusable(f"process {pid} belongs to user {uid}, not to ours")
    return pid


def _names(folder: int) -> list[str]:
    entries = sorted(os.listdir(folder))
    return [entry.removesuffix(_SUFFIX) for entry in entries if entry.endswith(_SUFFIX)]


def _address(folder: int, entry: str) -> str:
    return f"/proc/self/fd/{folder}/{entry}"


def _socket() -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.setblocking(False)
    return made


def _connected(folder: int, name: str) -> socket.socket:
    """Connect at once, or raise SocketUnusable: a full backlog refuses, too."""
    found = _socket()
    try:
        found.connect(_address(folder, name + _SUFFIX))
    except OSError as error:
        found.close()
        raise SocketUnusable(f"{name}: {error}") from error
    return found


def _remove_unused(folder: int) -> None:
    """Remove what killed processes left; a socket with a full backlog is in use."""
    for name in _names(folder):
        found = _socket()
        try:
            found.connect(_address(folder, name + _SUFFIX))
        except ConnectionRefusedError:
            with suppress(FileNotFoundError):
                os.unlink(name + _SUFFIX, dir_fd=folder)
        except OSError:
            pass
        finally:
            found.close()
