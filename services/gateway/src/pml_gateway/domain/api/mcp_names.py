"""Tool names that MCP clients accept: `[A-Za-z0-9_-]{1,64}`."""

import json
from collections import Counter
from collections.abc import Collection, Mapping

from pml_common.contracts.callable_names import callable_name
from pml_common.contracts.display_names import MAX_MCP_NAME, MCP_PREFIX
from pml_common.contracts.listed_names import HASH_DIGITS, listed_name, plain_name

MAX_NAME = MAX_MCP_NAME
OWN_PREFIX = "pml_"
"""Begins the names of PML's own tools."""

_MOST_NAMED = 3


def listed_names(
    tool_ids: Collection[str], reserved: Collection[str] = (), bare: Collection[str] = ()
) -> dict[str, str]:
    """Map each tool id to its listed name (`fs:read` → `fs_read`), unique and not in `reserved`.
    Those of the `bare` servers have their own names (`read`) where nothing else can have these.

    If several ids map to one name, or it is too long or could be a capability's, each of them gets
    digits of its own hash. So the order of the ids does not matter, and a name never passes from
    one tool to another because a third one was added or removed.
    """
    own = _own_names(tool_ids, reserved, bare)
    digits = dict.fromkeys((tool_id for tool_id in tool_ids if tool_id not in own), 0)
    reserved = {*reserved, *own.values()}
    names: dict[str, str] = {}
    while True:
        names = {
            tool_id: listed_name(tool_id, HASH_DIGITS[level]) for tool_id, level in digits.items()
        }
        holders = Counter(names.values())
        unfit = [
            tool_id
            for tool_id, name in names.items()
            if len(name) > MAX_NAME
            or name in reserved
            or holders[name] > 1
            or (not digits[tool_id] and name.startswith(MCP_PREFIX))
        ]
        if not unfit:
            return {**names, **own}
        for tool_id in unfit:
            digits[tool_id] += 1


def kept_prefixes(tool_ids: Collection[str], bare: Collection[str]) -> Mapping[str, str]:
    """Return the listed names of those tools of the `bare` servers that are not listed under their
    own names, by id."""
    own = _own_names(tool_ids, (), bare)
    return {
        tool_id: name
        for tool_id, name in listed_names(tool_ids, (), bare).items()
        if tool_id not in own and tool_id.partition(":")[0] in bare
    }


def may_be_of(name: str, server: str) -> bool:
    """Whether a tool with this listed name or id may belong to a server."""
    return plain_name(name).startswith(f"{plain_name(server)}_")


def how_to_call_capability(capability: str) -> str:
    """Explain how to call a capability by whose name, without `cap:`, a tool was called."""
    request = json.dumps({"capability": capability, "args": {}})
    return (
        f"no tool {capability!r}: it is a capability. Run it with pml_execute {request}, or inside "
        f"a program with `await capabilities.{callable_name(capability)}({{…}})`"
    )


def how_to_call_tool(name: str, listed: Mapping[str, str]) -> str | None:
    """Explain how to call the tool that a name stands for inside a program (`mcp.fs.read`), or
    that has it without its server (`read`); None where there is none. `listed` are the names by
    tool id."""
    as_id = name.removeprefix("mcp.").replace(".", ":", 1)
    found = [tool_id for tool_id in listed if as_id in (tool_id, tool_id.partition(":")[2])]
    if not found:
        return None
    ways = " or ".join(
        f"{listed[tool_id]} (inside pml_execute: `await mcp.call({json.dumps(tool_id)}, {{…}})`)"
        for tool_id in sorted(found)[:_MOST_NAMED]
    )
    return f"no tool {name!r}: call {ways}"


def _own_names(
    tool_ids: Collection[str], reserved: Collection[str], bare: Collection[str]
) -> Mapping[str, str]:
    """Return the names without their servers, by id, of those tools that can have them: no tool
    would have one with its server or from another bare server, and none looks like PML's own."""
    if not bare:
        return {}
    own: dict[str, str] = {}
    for tool_id in tool_ids:
        server, _, name = tool_id.partition(":")
        if server in bare:
            own[tool_id] = plain_name(name)
    holders = Counter(own.values())
    taken = {*reserved, *map(plain_name, tool_ids)}
    return {
        tool_id: name
        for tool_id, name in own.items()
        if holders[name] == 1
        and name not in taken
        and len(name) <= MAX_NAME
        and not name.startswith((MCP_PREFIX, OWN_PREFIX))
    }
