"""The approver's key: the credential of the person who decides, written anew by each start.

It lies outside the data folder and the folder worked in, readable for its owner alone. The gateway
is told its hash; no other service, tool server or sandbox is told that it exists.
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
    """Put a new key into the file and return its SHA-256, hex. Raises ApproverKeyError."""
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
    """The key in a file. Raises ApproverKeyError."""
    try:
        key = file.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ApproverKeyError(file, f"cannot be read: {error}") from error
    if not key.isascii() or not key.isprintable() or not key:
        raise ApproverKeyError(file, "holds no key")
    return key


def approver_headers(file: Path) -> dict[str, str]:
    """What a request is sent with that decides. Raises ApproverKeyError."""
    return {"Authorization": f"Bearer {read_key(file)}"}


def user_name() -> str:
    """The operating system's name of the user we run as, whatever the environment says."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _outside(file: Path, home: Path) -> None:
    """Keep the key out of what tool servers are commonly given: the data folder, and the folder
    that is worked in unless it holds all that the user has."""
    place, here = file.resolve(), Path.cwd().resolve()
    if place.is_relative_to(home.resolve()):
        raise ApproverKeyError(file, f"lies in the data folder {home}")
    if place.is_relative_to(here) and not Path.home().resolve().is_relative_to(here):
        raise ApproverKeyError(file, f"lies in the folder that is worked in, {here}")
