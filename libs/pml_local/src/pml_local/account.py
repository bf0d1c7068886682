"""The account that Postgres runs under when PML runs as root, and the folders it can reach.

Postgres refuses to run as root. PML then creates one system account and gives it folders created by
PML; permissions of other folders are never changed. Data that the account cannot reach (in a home
folder, say) is placed under /var/lib/pml instead.
"""

import fcntl
import os
import pwd
import shutil
import stat
import subprocess
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pml_local.errors import AccountError

ACCOUNT_NAME = "pml-postgres"
SYSTEM_FOLDER = Path("/var/lib/pml")


@dataclass(frozen=True, slots=True)
class Account:
    """A system account: user id and group id."""

    uid: int
    gid: int


def database_account() -> Account | None:
    """Return the account to run Postgres under, creating it when missing; None unless run as
    root."""
    if os.geteuid() != 0:
        return None
    with suppress(KeyError):
        return _found()
    with _locked():
        with suppress(KeyError):
            return _found()  # another process has made it meanwhile
        _make_account()
        return _found()


@contextmanager
def _locked() -> Generator[None]:
    """Exclude other processes: of two `useradd` of one name the second replaces the first's account
    by one with another id."""
    with (system_folder("account") / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # at most as long as a few `useradd` take
        yield


def _found() -> Account:
    entry = pwd.getpwnam(ACCOUNT_NAME)
    return Account(entry.pw_uid, entry.pw_gid)


def _make_account() -> None:
    useradd = shutil.which("useradd")
    advice = f"create the system account {ACCOUNT_NAME!r}, or run as an ordinary user"
    if useradd is None:
        raise AccountError(f"Postgres cannot run as root and there is no useradd: {advice}")
    options = ["--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent"]
    made = subprocess.run(  # noqa: S603 - fixed arguments
        [useradd, *options, "--shell", "/usr/sbin/nologin", ACCOUNT_NAME],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    if made.returncode not in (0, 9):  # 9: another process has just made it
        raise AccountError(
            f"Postgres cannot run as root and useradd failed ({made.stderr.strip()}): {advice}"
        )


def reachable(folder: Path) -> bool:
    """Whether any account may traverse every existing folder from the root to this one."""
    resolved = folder.resolve()
    return all(
        place.stat().st_mode & stat.S_IXOTH
        for place in (resolved, *resolved.parents)
        if place.exists()
    )


def system_folder(name: str) -> Path:
    """Create a folder under /var/lib/pml that other accounts may traverse but not list."""
    for place in (SYSTEM_FOLDER, SYSTEM_FOLDER / name):
        place.mkdir(mode=0o711, exist_ok=True)
        place.chmod(0o711)
    return SYSTEM_FOLDER / name


def own_folder(folder: Path, account: Account | None) -> Path:
    """Create a private folder (0700) owned by the account, or by the current user when it is
    None."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if account is not None:
        os.chown(folder, account.uid, account.gid)
    folder.chmod(0o700)
    return folder
