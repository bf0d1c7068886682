"""Listed names: what MCP clients see of tool ids, `[A-Za-z0-9_-]{1,64}`."""

import hashlib
import re
from typing import Final

from pml_common.contracts.display_names import MAX_MCP_NAME

HASH_DIGITS: Final = (0, 8, 16, 32)
"""Digits of the id's hash in a name, by level: level 0 is the plain name."""

_FORBIDDEN: Final = re.compile(r"[^A-Za-z0-9_-]")


def plain_name(text: str) -> str:
    """Return a text with `_` for what no listed name has."""
    return _FORBIDDEN.sub("_", text)


def listed_name(tool_id: str, digits: int) -> str:
    """Return the name of a tool id (`fs:read` is `fs_read`), with these digits of its hash."""
    plain = plain_name(tool_id)
    if not digits:
        return plain
    suffix = hashlib.sha256(tool_id.encode()).hexdigest()[:digits]
    return f"{plain[: MAX_MCP_NAME - 1 - digits]}_{suffix}"
