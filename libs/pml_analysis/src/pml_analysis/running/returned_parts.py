"""Returned parts pass: parts of tools' results that a program returns, and that no output schema
names.

Such a part may be missing. Its value is undefined then, and the program's result null: the sandbox
tells which it was, so that the run can say what the tool's result has instead.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from pml_analysis.arguments.sources import Source
from pml_analysis.names.choices import arms
from pml_analysis.structure.expansion import Expansion, Instance
from pml_analysis.syntax.node_kinds import FUNCTIONS, INLINE_FUNCTIONS
from pml_analysis.syntax.patterns import Path
from pml_analysis.syntax.tree import Node, Tree
from pml_common.contracts.tool import ENVELOPE
from pml_common.provides.json_schema import Described

_LEAVING: Final = frozenset({"break_statement", "continue_statement", "return_statement"})
_RIGHT_ALONE: Final = frozenset({"??", "||", "&&", "??=", "||=", "&&="})
"""Operators whose left side is never their value while it is undefined, is what their author asks
for, or is a target."""

_ANY_KEY: Final = ("additionalProperties", "patternProperties")
"""Keywords of schemas for fields of any name."""


@dataclass(frozen=True, slots=True)
class ReturnedPart:
    """An expression that gives the program its value: the part at `path` of the result of a
    node."""

    node: Node
    node_id: str
    path: Path


class _Value(NamedTuple):
    """An expression in one instance of the function that contains it."""

    node: Node
    at: Instance


def returned_parts(
    tree: Tree,
    expansion: Expansion,
    source: Callable[[Node, Instance], Source | None],
    outputs: Callable[[str], Described | None],
) -> Sequence[ReturnedPart]:
    """Return the parts that the program, or the functions whose value it returns, return. `source`
    tells where a value certainly comes from, `outputs` what a node's tool declares that it returns;
    None for a node of no tool."""
    finder = _Finder(tree, expansion)
    found: list[ReturnedPart] = []
    for node, at in finder.values():
        origin = source(node, at)
        if origin is None or origin.node_id is None or origin.default or not origin.path:
            continue
        declared = outputs(origin.node_id)
        if declared is None or _names(declared, origin.path):
            continue
        if origin.path[0] in ENVELOPE or not _is_optional(tree, node):
            found.append(ReturnedPart(node, origin.node_id, origin.path))
    return found


def _is_optional(tree: Tree, node: Node) -> bool:
    """Whether its author says that a part of it may be missing."""
    return any(each.kind == "optional_chain" for each in tree.subtree(node))


def _names(declared: Described, path: Path) -> bool:
    """Whether a schema names a part. An element of a list needs no name of its own."""
    for step in path:
        if not isinstance(step, str):
            declared = declared.items
        elif step in declared.properties:
            declared = declared.properties[step]
        else:
            return any(isinstance(declared.schema.get(key), dict) for key in _ANY_KEY)
    return True


class _Finder:
    """Finds the expressions that may give the program its value, each as it is written."""

    def __init__(self, tree: Tree, expansion: Expansion) -> None:
        self._tree = tree
        self._expansion = expansion
        self._entered = {one.unit.function.index for one in expansion.instances if one.unit}

    def values(self) -> Iterator[_Value]:
        program = self._expansion.instances[0]
        waiting = [_Value(node, program) for node in self._returned(self._tree.root)]
        while waiting:
            value = waiting.pop()
            parts = self._parts(value)
            if parts is None:
                yield value._replace(node=value.node.inner)
            else:
                waiting += parts

    def _parts(self, value: _Value) -> list[_Value] | None:
        """Return the expressions of which one gives this its value; None if it is one itself."""
        node = value.node.inner
        while node.kind == "await_expression" and node.operand is not None:
            node = node.operand.inner
        if node.kind == "call_expression":
            return self._of_function(node, value.at)
        several = arms(node)
        operator = node.child("operator")
        if operator is not None and operator.kind in _RIGHT_ALONE:
            several = several[1:]
        return [value._replace(node=arm) for arm in several] or None

    def _of_function(self, call: Node, at: Instance) -> list[_Value] | None:
        """Return what a function of the program returns that is called here alone; None for any
        other."""
        callee = call["function"].inner
        if callee.kind in INLINE_FUNCTIONS and callee.index not in self._entered:
            return [_Value(node, at) for node in self._returned(callee["body"])]
        entered = self._expansion.entered.get((call.index, at.number))
        if entered is None or entered.unit is None or not self._is_only(entered):
            return None
        return [_Value(node, entered) for node in self._returned(entered.unit.function["body"])]

    def _is_only(self, entered: Instance) -> bool:
        """Whether it is the only way into its function."""
        ways = [one for one in self._expansion.instances if one.unit is entered.unit]
        return len(ways) == 1 and entered.number not in self._expansion.loops

    def _returned(self, body: Node) -> Iterator[Node]:
        """Yield what a function returns; nothing that a `finally` may replace."""
        if body.kind not in ("program", "statement_block"):
            yield body
            return
        waiting = [body]
        while waiting:
            node = waiting.pop()
            if node.kind == "return_statement":
                yield from node.children[:1]
            elif node.kind not in FUNCTIONS and not self._is_replaced(node):
                waiting += node.children

    def _is_replaced(self, node: Node) -> bool:
        last = node.child("finalizer") if node.kind == "try_statement" else None
        return last is not None and any(each.kind in _LEAVING for each in self._tree.subtree(last))
