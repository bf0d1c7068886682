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
"""Namespaces of PML's own tools; not for capabilities, nor for MCP servers."""

MCP_PREFIX: Final = "cap_"
"""The beginning of the tools' names over MCP that are capabilities."""

_MCP_NAME: Final = MCP_PREFIX + "{}_{}"
_TOOL_ID: Final = "cap:"
_MAX_ACTION: Final = MAX_MCP_NAME - len(_MCP_NAME.format("n", ""))
_NAMESPACE: Final = "[a-z][a-z0-9-]"
_ACTION: Final = "[a-z][a-z0-9_]"

PATTERN: Final = f"^{_NAMESPACE}{{0,{MAX_NAMESPACE - 1}}}:{_ACTION}{{0,{_MAX_ACTION - 1}}}$"
"""Form of a display name, as far as a regular expression tells."""

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

    @property
    def mcp_name(self) -> str:
        """The tool that it is over MCP."""
        return _MCP_NAME.format(self.namespace, self.action)


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
            f"{text!r} is too long by {excess}: over MCP it is "
            f"{_MCP_NAME.format('<namespace>', '<action>')}, of at most {MAX_MCP_NAME} characters"
        )
    return DisplayName(namespace, action)


def mcp_name_of(name: str) -> str | None:
    """Return the tool that a capability is over MCP; None for one without a name of its own."""
    try:
        return parse_display_name(name).mcp_name
    except BadName:
        return None


def capability_of_tool(tool: str) -> str | None:
    """The display name of the capability that a tool over MCP is, by its listed name
    (`cap_fs_read_json`) or its id (`cap:fs:read_json`); None for other tools."""
    if tool.startswith(_TOOL_ID):
        return tool.removeprefix(_TOOL_ID)
    if not tool.startswith(MCP_PREFIX):
        return None
    # A namespace has no underscore.
    namespace, _, action = tool.removeprefix(MCP_PREFIX).partition("_")
    try:
        return str(parse_display_name(f"{namespace}:{action}"))
    except BadName:
        return None


def _check_part(part: str, text: str, form: str, separators: str) -> None:
    if not text:
        raise BadName(f"the {part} is empty: {_FORM}")
    if re.fullmatch(f"{form}*", text) is None:
        raise BadName(
            f"the {part} {text!r} is not valid: lower-case letters (a to z), digits and "
            f"{separators}, beginning with a letter"
        )
