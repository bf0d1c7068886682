"""The approver's key: the credential for deciding approvals, replaced at each start.

It is stored outside the data folder and the working folder, readable by its owner only. The gateway
gets its hash; no other service, tool server or sandbox gets the key or its path.
"""

import hashlib
import os
import pwd
import secrets
from collections.abc import Mapping
from pathlib import Path

from pml_local.errors import ApproverKeyError

KEY_FILE_VARIABLE = "PML_APPROVER_KEY_FILE"
_FILE_NAME = "approver.key"


def default_key_file(home: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """PML_APPROVER_KEY_FILE, else `pml/<instance>/approver.key` under XDG_STATE_HOME, else under
    `~/.local/state`; one instance is one data folder."""
    if named := environ.get(KEY_FILE_VARIABLE):
        return Path(named).expanduser().absolute()
    state = Path(environ.get("XDG_STATE_HOME") or ".")
    if not state.is_absolute():
        state = Path.home() / ".local" / "state"
    instance = hashlib.sha256(os.fsencode(home.resolve())).hexdigest()[:16]
    return state / "pml" / instance / _FILE_NAME


def write_key(file: Path, home: Path) -> str:
    """Write a new key to the file and return its SHA-256 in hex. Raises ApproverKeyError."""
    _outside(file, home)
    key = secrets.token_urlsafe(32)
    aside = file.with_name(f"{file.name}.new")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        aside.unlink(missing_ok=True)
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w") as opened:
            opened.write(key)
        aside.replace(file)
    except OSError as error:
        raise ApproverKeyError(file, f"cannot be written: {error.strerror}") from error
    return hashlib.sha256(key.encode()).hexdigest()


def read_key(file: Path) -> str:
    """Read the key from a file. Raises ApproverKeyError."""
    try:
        key = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ApproverKeyError(file, f"cannot be read: {error}") from error
    if not key.isascii() or not key.isprintable() or not key:
        raise ApproverKeyError(file, "is empty")
    return key


def approver_headers(file: Path) -> dict[str, str]:
    """Headers that authorise a decision. Raises ApproverKeyError."""
    return {"Authorization": f"Bearer {read_key(file)}"}


def user_name() -> str:
    """Name of the current user according to the operating system; the environment is ignored."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _outside(file: Path, home: Path) -> None:
    """Reject a file inside what tool servers are commonly given: the data folder, and the working
    folder unless the user's home is inside it."""
    place, here = file.resolve(), Path.cwd().resolve()
    if place.is_relative_to(home.resolve()):
        raise ApproverKeyError(file, f"is inside the data folder {home}")
    if place.is_relative_to(here) and not Path.home().resolve().is_relative_to(here):
        raise ApproverKeyError(file, f"is inside the working folder {here}")
