"""The approver's key, sent only with requests that decide."""

import os
from pathlib import Path
from urllib.parse import urlsplit

from pml_cli.errors import CommandError
from pml_local.approver import KEY_FILE_VARIABLE, approver_headers
from pml_local.errors import ApproverKeyError
from pml_local.folder import default_home
from pml_local.ports import LOOPBACK
from pml_local.state import read_state

_OWN_NAMES = (LOOPBACK, "localhost")


def deciding_headers(url: str, key_file: Path | None) -> dict[str, str]:
    """Headers for a decision sent to `url`: the key from the given file or PML_APPROVER_KEY_FILE,
    else the local stack's key, which is sent to no other gateway. Raises CommandError."""
    named = os.environ.get(KEY_FILE_VARIABLE)
    file = key_file or (Path(named).expanduser() if named else _key_of_the_stack_at(url))
    if file is None:
        raise CommandError(
            f"deciding at {url} needs its approver's key: name the key file with "
            f"--key-file or {KEY_FILE_VARIABLE}, or run this where `pml up` runs (PML_HOME)"
        )
    try:
        return approver_headers(file)
    except ApproverKeyError as error:
        raise CommandError(str(error)) from error


def _key_of_the_stack_at(url: str) -> Path | None:
    state = read_state(default_home())
    return state.approver_key if state and _same_local_port(url, state.url) else None


def _same_local_port(one: str, other: str) -> bool:
    """Whether two addresses mean the same port of this machine."""
    try:
        asked, ours = urlsplit(one), urlsplit(other)
        return asked.hostname in _OWN_NAMES and asked.port == ours.port
    except ValueError:
        return False
