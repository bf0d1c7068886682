"""The tools that `tools/list` has, as a client asks for them."""

from collections.abc import Sequence
from typing import Final, Literal, get_args

from pml_common.contracts.tool import ToolDefinition
from pml_gateway.domain.api.errors import InvalidRequest

ListMode = Literal["all", "meta", "auto"]
"""`meta`: PML's own tools and named capabilities; `all`: the servers' tools as well; `auto`: these
while they are few."""

LIST_PARAMETER: Final = "tools"
LIST_HEADER: Final = "pml-tools"

AUTO_CHARACTERS: Final = 60_000
"""Largest size of the servers' tools in a list of mode `auto`: 15,000 tokens of four characters."""


def list_mode(parameter: str | None, header: str | None, default: ListMode) -> ListMode:
    """Return the mode that a client asks for, by its URL before its header. Raises
    InvalidRequest."""
    asked = parameter if parameter is not None else header
    if asked is None:
        return default
    for mode in get_args(ListMode):
        if asked == mode:
            return mode
    raise InvalidRequest(LIST_PARAMETER, f"is {asked!r}: it is one of all, meta and auto")


def has_upstream_tools(mode: ListMode, tools: Sequence[ToolDefinition]) -> bool:
    """Whether a list of this mode has the servers' tools."""
    if mode == "auto":
        return sum(map(_size, tools)) <= AUTO_CHARACTERS
    return mode == "all"


def _size(tool: ToolDefinition) -> int:
    return len(tool.model_dump_json(include={"name", "description", "input_schema"}))
