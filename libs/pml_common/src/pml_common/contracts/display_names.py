"""Display names of capabilities: `namespace:action[_target[_variant]]`, as `fs:read_json`.

A program calls it as `capabilities.fs_read_json`, an MCP client as `cap_fs_read_json`.
"""

import re
from dataclasses import dataclass
from typing import Final

MAX_NAMESPACE: Final = 32
MAX_MCP_NAME: Final = 64
"""Longest tool name that MCP clients accept."""
RESERVED_NAMESPACES: Final = ("cap", "dns", "learn", "meta", "pml")
"""Namespaces of PML's own tools."""

PATTERN: Final = r"^[a-z][a-z0-9-]{0,31}:[a-z][a-z0-9_]{0,57}$"
"""Form of a display name, as far as a regular expression tells."""

_MCP_NAME: Final = "cap_{}_{}"
_NAMESPACE: Final = re.compile(r"[a-z][a-z0-9-]*")
_ACTION: Final = re.compile(r"[a-z][a-z0-9_]*")
_FORM: Final = "a name is namespace:action, as fs:read_json"


class BadName(ValueError):
    """The text is not a display name; says which part is wrong, and what is allowed."""


@dataclass(frozen=True)
class DisplayName:
    """A valid display name; `str` prints what `parse_display_name` reads."""

    namespace: str
    action: str

    def __str__(self) -> str:
        return f"{self.namespace}:{self.action}"


def parse_display_name(text: str) -> DisplayName:
    """Parse a display name. Raises BadName."""
    namespace, colon, action = text.partition(":")
    if not colon:
        raise BadName(f"{text!r} has no colon: {_FORM}")
    if ":" in action:
        raise BadName(f"{text!r} has more than one colon: {_FORM}")
    _check_part("namespace", namespace, _NAMESPACE, "hyphens")
    if len(namespace) > MAX_NAMESPACE:
        raise BadName(f"the namespace {namespace!r} has more than {MAX_NAMESPACE} characters")
    if namespace in RESERVED_NAMESPACES:
        others = ", ".join(RESERVED_NAMESPACES)
        raise BadName(f"the namespace {namespace!r} is reserved, as all of {others}; use another")
    _check_part("action", action, _ACTION, "underscores")
    excess = len(_MCP_NAME.format(namespace, action)) - MAX_MCP_NAME
    if excess > 0:
        raise BadName(
            f"{text!r} is {excess} characters too long: over MCP it is "
            f"{_MCP_NAME.format('<namespace>', '<action>')}, of at most {MAX_MCP_NAME}"
        )
    return DisplayName(namespace, action)


def _check_part(part: str, text: str, form: re.Pattern[str], separators: str) -> None:
    if not text:
        raise BadName(f"the {part} is empty: {_FORM}")
    if form.fullmatch(text) is None:
        raise BadName(
            f"the {part} {text!r} is not valid: lower-case letters (a to z), digits and "
            f"{separators}, beginning with a letter"
        )
