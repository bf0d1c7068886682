"""Calls pass: every call of a tool or a capability, and every call that may be one."""

from dataclasses import dataclass, field
from typing import Final

from pml_analysis.names.origins import Origins
from pml_analysis.names.values import (
    AnyTool,
    CallByName,
    Constant,
    FromCapabilities,
    FromTools,
    Origin,
)
from pml_analysis.syntax.member_names import LOOKED_UP, how_by_id
from pml_analysis.syntax.tree import Node, Tree
from pml_analysis.text.problems import Problem

CAPABILITY_SERVER: Final = "cap"
"""Server name under which capabilities are called as tools: `cap:fs:read_json`."""


@dataclass(frozen=True, slots=True, eq=False)
class CallSite:
    """One call of one tool, or of the capability that the program names so (`fs_read_json`,
    `fs:read_json`); `argument` is its argument expression, if any, and `spread` the list that holds
    it, maybe, in `f(...list)`."""

    call: Node
    callee: Node
    server: str
    tool: str
    argument: Node | None
    capability: str | None = None
    spread: Node | None = None

    @property
    def tool_id(self) -> str:
        """Return `server:tool`; of a capability, `cap:` and the name in the program."""
        return f"{self.server}:{self.tool}"


@dataclass(frozen=True, slots=True, eq=False)
class OneName:
    """A call by a name that is no tool of a server: `mcp.fs(…)`, `mcp.call("read")`; `problem` is
    what is wrong with it whatever the tools."""

    name: str
    problem: Problem


@dataclass
class Calls:
    """The calls found, each sort in source order."""

    sites: list[CallSite] = field(default_factory=list[CallSite])
    dynamic: list[Node] = field(default_factory=list[Node])
    problems: list[Problem] = field(default_factory=list[Problem])
    by_one_name: list[OneName] = field(default_factory=list[OneName])


def find_calls(tree: Tree, origins: Origins) -> Calls:
    """Classify every call expression by the origin of its callee."""
    calls = Calls()
    for call in tree.of("call_expression"):
        callee = call["function"]
        _classify(calls, origins, call, callee, origins.of(callee))
    return calls


def _classify(calls: Calls, origins: Origins, call: Node, callee: Node, origin: Origin) -> None:
    match origin:
        case FromTools(path=(server, tool)) if LOOKED_UP & {server, tool}:
            message = f"mcp.{server}.{tool} is no tool: {how_by_id((server, tool))}."
            calls.problems.append(Problem(callee.start, message))
        case FromTools(path=(server, tool)):
            calls.sites.append(_site(call, callee, server, tool, 0))
        case FromTools(path=(name,)) if name != CAPABILITY_SERVER:
            message = f"{name} is a server, not a tool: call mcp.{name}.<tool>(…)."
            calls.by_one_name.append(OneName(name, Problem(callee.start, message)))
        case FromTools(path=path):
            calls.problems.append(Problem(callee.start, _NO_CAP if path else _NO_TOOL))
        case CallByName():
            _by_name(calls, origins, call, callee)
        case FromCapabilities(path=(name,)):
            calls.sites.append(_site(call, callee, CAPABILITY_SERVER, name, 0))
        case FromCapabilities():
            calls.problems.append(Problem(callee.start, _NO_CAPABILITY))
        case AnyTool():
            calls.dynamic.append(call)
        case _:
            pass


def _by_name(calls: Calls, origins: Origins, call: Node, callee: Node) -> None:
    """Read `mcp.call("server:tool", arguments)`, `mcp.call("cap:namespace:action", arguments)`."""
    first = _argument(call, 0)
    name = origins.of(first) if first is not None else None
    if not isinstance(name, Constant):
        calls.dynamic.append(call)
        return
    server, colon, tool = str(name.value).partition(":")
    if not (server and colon and tool):
        message = f'mcp.call takes "server:tool"; this is {name.value!r}.'
        problem = Problem(callee.start, message)
        if server == CAPABILITY_SERVER:
            calls.problems.append(problem)
        else:
            calls.by_one_name.append(OneName(str(name.value), problem))
    else:
        calls.sites.append(_site(call, callee, server, tool, 1))


def _site(call: Node, callee: Node, server: str, tool: str, position: int) -> CallSite:
    """Build the site of a call whose arguments are in this position."""
    capability = tool if server == CAPABILITY_SERVER else None
    argument, given = _argument(call, position), call["arguments"].children
    spread = next((node for node in given[: position + 1] if node.kind == "spread_element"), None)
    return CallSite(call, callee, server, tool, argument, capability, spread)


def _argument(call: Node, position: int) -> Node | None:
    """Return one argument; None when it is missing, or a spread makes its place uncertain."""
    arguments = call["arguments"]
    given = arguments.children[: position + 1] if arguments.kind == "arguments" else []
    if len(given) <= position or any(node.kind == "spread_element" for node in given):
        return None
    return given[position]


_NO_CAPABILITY: Final = (
    "capabilities is not a function: call one of the capabilities, capabilities.<name>(…)."
)

_NO_TOOL: Final = "mcp is not a tool: call one of its servers' tools, mcp.<server>.<tool>(…)."
_NO_CAP: Final = 'cap is no tool: call a capability by its name, mcp.call("cap:<name>", …).'
