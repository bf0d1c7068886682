"""MCP servers that a program names before they have listed their tools."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from pml_common.contracts.analyzer import AnalysisRejected
from pml_common.contracts.structure import NO_SERVER, NO_TOOLS, Diagnostic

_IN_A_NAME = "[A-Za-z0-9_-]"
_BEFORE_LISTED = "(?:[.'\"`]|mcp_+)"
"""Text before the listed name of a tool: `mcp.fs_read`, `callTool("fs_read")`, `mcp__fs__read`."""


def named_in(program: str, servers: Iterable[str]) -> Sequence[str]:
    """Return the servers whose names occur in a program's text, or begin listed names of tools;
    rather too many than too few."""
    return [name for name in servers if re.search(_naming(name), program)]


def _naming(server: str) -> str:
    name = re.escape(server)
    listed = name.replace(r"\-", "[-_]")
    return f"(?<!{_IN_A_NAME}){name}(?!{_IN_A_NAME})|{_BEFORE_LISTED}{listed}_"


def with_absent(rejection: AnalysisRejected, absent: Mapping[str, str]) -> AnalysisRejected:
    """Return the rejection of a program, with why the servers that it names are `absent`: instead
    of each diagnostic that says that there is no such server, else behind the first error."""
    found = rejection.diagnostics
    first = next((number for number, one in enumerate(found) if one.severity == "error"), None)
    if rejection.kind != "rejected" or first is None:
        return rejection
    told: set[str] = set()
    explained: list[Diagnostic] = []
    for one in found:
        name = next((name for name in absent if _misses(one, name)), None)
        told |= {name} if name else set()
        message = f"{absent[name]}." if name else one.message
        explained.append(one.model_copy(update={"message": message}))
    others = [why for name, why in absent.items() if name not in told]
    message = ". ".join((explained[first].message.rstrip("."), *others))
    if others:
        explained[first] = explained[first].model_copy(update={"message": message})
    return rejection.model_copy(update={"diagnostics": tuple(explained)})


def _misses(found: Diagnostic, server: str) -> bool:
    """Whether a diagnostic only says that no tool of this server is known."""
    return found.message.startswith(f"{NO_SERVER} {json.dumps(server)}") or (
        found.message.startswith(f"{server}:") and found.message.endswith(NO_TOOLS)
    )
