"""Renaming: the edits that replace a name of another host by the one that works here."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from pml_analysis.names.bindings import Scopes
from pml_analysis.names.spellings import Tool
from pml_analysis.syntax.edits import Edited, Replacement, overwritten
from pml_analysis.syntax.node_kinds import WRAPPERS
from pml_analysis.syntax.tree import Node, Tree
from pml_analysis.typing.declarations import member, opening
from pml_common.contracts.callable_names import callable_name
from pml_common.contracts.display_names import capability_of_tool

_BY_ID: Final = "mcp.call"
_CAPABILITIES: Final = "capabilities"
_DROPPABLE: Final = WRAPPERS | {
    *("+", "binary_expression", "escape_sequence", "identifier", "property_identifier"),
    *("string", "string_fragment", "template_string", "template_substitution"),
}
_MAX_NAMED: Final = 3
_MAX_LENGTH: Final = 80


class Renaming(NamedTuple):
    """One name as it was written, what it is here, and the edits."""

    written: str
    meant: str
    edits: tuple[Replacement, ...]


class Renamed(NamedTuple):
    """A program with other names, and what they were."""

    edited: Edited
    names: tuple[tuple[str, str], ...]


def renamed(tree: Tree, renamings: Iterable[Renaming]) -> Renamed | None:
    """Carry out renamings; None where there are none."""
    found = list(renamings)
    if not found:
        return None
    edits = [edit for each in found for edit in each.edits]
    names = tuple((each.written, each.meant) for each in found if each.meant)
    return Renamed(overwritten(tree.source.text, edits), names)


def written(tree: Tree, node: Node) -> str:
    """Return the text of a name, on one line."""
    text = " ".join(tree.text(node).split())
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}…"


def is_droppable(tree: Tree, name: Node) -> bool:
    """Whether the expression of a name does nothing else: it may be replaced."""
    return name.kind == "property_identifier" or all(
        node.kind in _DROPPABLE for node in tree.subtree(name)
    )


def opening_of(scopes: Scopes, tools: list[Tool], name: str = "") -> str | None:
    """Return a call, up to its arguments, of the only one of these tools; where there is none, of
    the capability that a client lists under a name."""
    if len(tools) == 1:
        return opening(*tools[0])
    capability = None if tools else capability_of_tool(name)
    if capability is None or any(each.name == _CAPABILITIES for each in scopes.bindings):
        return None
    return f"{_CAPABILITIES}{member(callable_name(capability))}("


def parts_of(found: str) -> tuple[str, str]:
    """Return the callee of an opened call, and the first argument of one by id."""
    if found.endswith("("):
        return found[:-1], ""
    return _BY_ID, found.removeprefix(f"{_BY_ID}(")


def notice(names: Iterable[tuple[str, str]]) -> str:
    """Tell the author which names were replaced."""
    every = list(dict.fromkeys(names))
    listed = ", ".join(f"`{each}` is `{meant}`" for each, meant in every[:_MAX_NAMED])
    more = f", and {len(every) - _MAX_NAMED} more" if len(every) > _MAX_NAMED else ""
    return f"Names of tools were replaced by those that work here: {listed}{more}."
