"""The one data folder of a stack: its layout, its lock, its secrets.

```
<home>/lock          held (flock) while a stack runs; holds its pid
<home>/stack.json    what runs, for other commands (state.py); 0600
<home>/secrets/      generated once, 0600
<home>/keys/         the services' signing keys (keys.py); 0600
<home>/logs/         one log per part
<home>/nats/         configuration and JetStream store
<home>/postgres/     the cluster; a link to /var/lib/pml/<id> where Postgres cannot live here
<home>/mcp.json      the user's MCP servers, if there
<home>/policy.json   what may run without asking, if there
```
"""

import fcntl
import os
import secrets
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pml_local.account import Account, reachable, system_folder
from pml_local.errors import FolderInUseError, FolderOwnerError

HOME_VARIABLE = "PML_HOME"
DEFAULT_NAME = ".pml"


def default_home(environ: Mapping[str, str] = os.environ) -> Path:
    """PML_HOME, else `.pml` in the current folder; absolute."""
    return Path(environ.get(HOME_VARIABLE) or DEFAULT_NAME).expanduser().absolute()


class DataFolder:
    """The paths below one home; made by `open_folder`, which holds its lock."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.nats = home / "nats"
        self.keys = home / "keys"
        self.mcp_servers = home / "mcp.json"
        self.policy = home / "policy.json"

    def log(self, part: str) -> Path:
        """The log of one part."""
        return self.home / "logs" / f"{part}.log"

    def secret(self, name: str) -> str:
        """64 hex digits, generated at first use and kept."""
        file = self.home / "secrets" / name
        file.parent.mkdir(mode=0o700, exist_ok=True)
        if not file.exists():
            aside = file.with_name(f"{name}.new")
            aside.touch(mode=0o600)
            aside.write_text(secrets.token_hex(32))
            aside.replace(file)
        return file.read_text()

    def postgres(self, account: Account | None) -> Path:
        """Where the cluster lies: in the home, or linked from it when the account cannot get there.

        The link's target carries a random id: a home that was removed and made anew starts anew.
        """
        inside = self.home / "postgres"
        if inside.is_symlink():
            return inside.readlink()
        if inside.exists() or account is None or reachable(self.home):
            return inside
        outside = system_folder(f"postgres-{secrets.token_hex(8)}")
        inside.symlink_to(outside)
        return outside


@contextmanager
def open_folder(home: Path) -> Generator[DataFolder]:
    """Make the folder, and hold its lock inside the block.

    Raises FolderInUseError when another process holds it, FolderOwnerError when it is another
    user's. The kernel frees the lock when its holder dies, however it dies.
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
    """Private to its user; root's may be passed through, so that Postgres's account gets in."""
    if not home.exists():
        home.mkdir(mode=0o700, parents=True)
        home.chmod(0o711 if os.geteuid() == 0 else 0o700)
    owner = home.stat().st_uid
    if owner != os.geteuid():
        raise FolderOwnerError(home, owner)


def _holder(lock: Path) -> int | None:
    text = lock.read_text().strip()
    return int(text) if text.isdigit() else None
