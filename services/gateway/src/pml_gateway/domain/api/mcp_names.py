"""Tool names that MCP clients accept: `[A-Za-z0-9_-]{1,64}`."""

import hashlib
import re
from collections import Counter
from collections.abc import Collection

MAX_NAME = 64
_FORBIDDEN = re.compile(r"[^A-Za-z0-9_-]")
_HASH_DIGITS = (0, 8, 16, 32)
"""Digits of the id's hash in a name, by level: level 0 is the plain name."""


def listed_names(tool_ids: Collection[str], reserved: Collection[str] = ()) -> dict[str, str]:
    """Map each tool id to its listed name (`fs:read` → `fs_read`), unique and not in `reserved`.

    If several ids map to one name, or it is too long, each of them gets digits of its own hash. So
    the order of the ids does not matter, and a name never passes from one tool to another because
    a third one was added or removed.
    """
    digits = dict.fromkeys(tool_ids, 0)
    names: dict[str, str] = {}
    while True:
        names = {tool_id: _name(tool_id, _HASH_DIGITS[level]) for tool_id, level in digits.items()}
        holders = Counter(names.values())
        unfit = [
            tool_id
            for tool_id, name in names.items()
            if len(name) > MAX_NAME or name in reserved or holders[name] > 1
        ]
        if not unfit:
            return names
        for tool_id in unfit:
            digits[tool_id] += 1


def may_be_of(name: str, server: str) -> bool:
    """Whether a tool with this listed name or id may belong to a server."""
    return _FORBIDDEN.sub("_", name).startswith(f"{_FORBIDDEN.sub('_', server)}_")


def _name(tool_id: str, digits: int) -> str:
    plain = _FORBIDDEN.sub("_", tool_id)
    if not digits:
        return plain
    suffix = hashlib.sha256(tool_id.encode()).hexdigest()[:digits]
    return f"{plain[: MAX_NAME - 1 - digits]}_{suffix}"
