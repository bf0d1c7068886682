"""The data folder of a stack: its layout, lock and secrets.

```
<home>/lock          locked (flock) while a stack runs; contains its pid
<home>/stack.json    the running stack's state, for other commands (state.py); 0600
<home>/secrets/      generated once, 0600
<home>/keys/         the services' signing keys (keys.py); 0600
<home>/sockets/      the gateway's socket for queries from this machine; 0700
<home>/logs/         one log per part
<home>/nats/         configuration and JetStream store
<home>/postgres/     the cluster; a link to /var/lib/pml/<id> where Postgres has no access here
<home>/logins/       tokens of logins at MCP servers; 0700
<home>/mcp.json      the user's MCP servers, if any
<home>/policy.json   the user's policy, if any
```
"""

import fcntl
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pml_local.errors import FolderInUseError, FolderOwnerError

if TYPE_CHECKING:
    from pml_local.account import Account

HOME_VARIABLE = "PML_HOME"
DEFAULT_NAME = ".pml"


def default_home(environ: Mapping[str, str] = os.environ) -> Path:
    """PML_HOME, else `.pml` in the current folder; absolute."""
    return Path(environ.get(HOME_VARIABLE) or DEFAULT_NAME).expanduser().absolute()


class DataFolder:
    """The paths below one home; created by `open_folder`, which holds its lock."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.nats = home / "nats"
        self.keys = home / "keys"
        self.sockets = home / "sockets"
        self.logins = home / "logins"
        self.mcp_servers = home / "mcp.json"
        self.policy = home / "policy.json"

    def log(self, part: str) -> Path:
        """The log file of one part."""
        return self.home / "logs" / f"{part}.log"

    def secret(self, name: str) -> str:
        """64 hex digits, generated at first use and stored."""
        from secrets import token_hex

        file = self.home / "secrets" / name
        file.parent.mkdir(mode=0o700, exist_ok=True)
        if not file.exists():
            aside = file.with_name(f"{name}.new")
            aside.touch(mode=0o600)
            aside.write_text(token_hex(32))
            aside.replace(file)
        return file.read_text()

    def postgres(self, account: "Account | None") -> Path:
        """The cluster's folder: in the home, or linked from it when the account cannot reach the
        home.

        The link's target has a random id: a home that was removed and created again starts empty.
        """
        from secrets import token_hex

        from pml_local.account import reachable, system_folder

        inside = self.home / "postgres"
        if inside.is_symlink():
            return inside.readlink()
        if inside.exists() or account is None or reachable(self.home):
            return inside
        outside = system_folder(f"postgres-{token_hex(8)}")
        inside.symlink_to(outside)
        return outside


@contextmanager
def open_folder(home: Path) -> Generator[DataFolder]:
    """Create the folder and hold its lock until the context exits.

    Raises FolderInUseError when another process holds the lock, FolderOwnerError when the folder
    belongs to another user. The kernel releases the lock when its holder dies.
    """
    _make(home)
    lock = home / "lock"
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FolderInUseError(home, _holder(lock)) from None
        lock.write_text(str(os.getpid()))
        yield DataFolder(home)
    finally:
        os.close(descriptor)


def _make(home: Path) -> None:
    """Create it private to its user; root's may be traversed, so that Postgres's account gets
    in."""
    if not home.exists():
        home.mkdir(mode=0o700, parents=True)
        home.chmod(0o711 if os.geteuid() == 0 else 0o700)
    owner = home.stat().st_uid
    if owner != os.geteuid():
        raise FolderOwnerError(home, owner)


def _holder(lock: Path) -> int | None:
    text = lock.read_text().strip()
    return int(text) if text.isdigit() else None
