"""Listings pass: expressions that read the names of servers and tools, and call nothing.

The sandbox's `mcp` has every name and lists none; what runs has the analysis's list in these
places: `Object.keys(mcp)`, `for (const tool in mcp.fs)`, `"fs" in mcp`.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from pml_analysis.names.origins import Origins
from pml_analysis.names.values import FromTools
from pml_analysis.structure.calls import CAPABILITY_SERVER
from pml_analysis.syntax.node_kinds import MEMBERS
from pml_analysis.syntax.tree import Node, Tree

Path = tuple[str, ...]
ANY_SERVER: Final[Path] = ("", "")
"""Stands for the path of a server that only the run can tell: `mcp[name]`."""

_OF_ALL: Final = frozenset(
    {("Object", "getOwnPropertyNames"), ("Object", "keys"), ("Reflect", "ownKeys")}
)
_OF_ONE: Final = frozenset({("Object", "hasOwn"), ("Reflect", "has")})


class Listing(NamedTuple):
    """An expression whose names are read: of all servers, or of the tools of one."""

    node: Node
    path: Path


def find_listings(tree: Tree, origins: Origins) -> list[Listing]:
    """Return the listings of a program, in source order."""
    found: list[Listing] = []
    for node in _listed(tree, origins):
        path = _path(origins, node) if _is_direct(node) else None
        if path is not None:
            found.append(Listing(node, path))
    return sorted(found, key=lambda each: each.node.start)


def _path(origins: Origins, node: Node) -> Path | None:
    """Return what an expression lists; None for what is no server, or all of them."""
    origin = origins.of(node)
    if isinstance(origin, FromTools):
        is_listed = len(origin.path) < 2 and origin.path != (CAPABILITY_SERVER,)
        return origin.path if is_listed else None
    member = node.inner
    if member.kind not in MEMBERS or origins.key(member) is not None:
        return None
    return ANY_SERVER if origins.of(member.children[0]) == FromTools() else None


def _listed(tree: Tree, origins: Origins) -> Iterator[Node]:
    """Yield the expressions whose names alone are read."""
    for call in tree.of("call_expression"):
        function = _function(tree, origins, call["function"].inner)
        given = call["arguments"].children if function is not None else []
        is_whole = all(each.kind != "spread_element" for each in given)
        if is_whole and len(given) == (1 if function in _OF_ALL else 2):
            yield given[0]
    for loop in tree.of("for_in_statement"):
        if loop["operator"].kind == "in":
            yield loop["right"]
    for test in tree.of("binary_expression"):
        if test["operator"].kind == "in" and test["left"].kind != "private_property_identifier":
            yield test["right"]


def _function(tree: Tree, origins: Origins, callee: Node) -> tuple[str, str] | None:
    if callee.kind not in MEMBERS:
        return None
    owner = callee.children[0].inner
    if owner.kind != "identifier" or origins.scopes.binding(owner) is not None:
        return None
    function = tree.name(owner), str(origins.key(callee))
    return function if function in _OF_ALL or function in _OF_ONE else None


def _is_direct(node: Node) -> bool:
    """Whether an expression is a name or a chain of members of one."""
    node = node.inner
    while node.kind in MEMBERS:
        node = node.children[0].inner
    return node.kind == "identifier"
