"""Demands pass: parts of the arguments without which the program fails, whatever else happens.

Only what every run reaches counts: statements of the program itself, none after one that returns,
and of those what is always evaluated.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from pml_analysis.names.choices import condition_of
from pml_analysis.names.constants import json_value
from pml_analysis.parameters.allowed_values import throws
from pml_analysis.parameters.method_types import METHODS
from pml_analysis.parameters.parameter_uses import ParameterUses
from pml_analysis.syntax.node_kinds import CLASSES, FUNCTIONS, MEMBERS
from pml_analysis.syntax.patterns import Path
from pml_analysis.syntax.tree import Node, returns

_ALWAYS: Final = frozenset(
    {"expression_statement", "lexical_declaration", "return_statement", "variable_declaration"}
)
_ABSENT: Final = frozenset({"==", "==="})
_PRESENT: Final = frozenset({"!=", "!=="})
_BINARY: Final = frozenset({"augmented_assignment_expression", "binary_expression"})
_SHORT: Final = frozenset({"&&", "||", "??"})


@dataclass(slots=True)
class Demands:
    """The parts that must be there, and those that must be of a type."""

    present: set[Path] = field(default_factory=set[Path])
    types: dict[Path, set[str]] = field(default_factory=dict[Path, set[str]])


def demands_of(uses: ParameterUses) -> Demands:
    """Collect the demands of a program."""
    reader = _Reader(uses)
    for statement in uses.origins.tree.root.children:
        if statement.kind in _ALWAYS:
            reader.evaluated(statement)
        elif statement.kind == "if_statement":
            reader.evaluated(condition_of(statement))
            if throws(statement["consequence"]):
                reader.refused(condition_of(statement))
        if returns(statement):
            break
    return reader.found


class _Reader:
    def __init__(self, uses: ParameterUses) -> None:
        self.found = Demands()
        self._uses = uses
        self._tree = uses.origins.tree

    def evaluated(self, node: Node) -> None:
        """Read an expression or statement that is always evaluated."""
        waiting = [node]
        while waiting:
            found = waiting.pop()
            if found.kind in MEMBERS:
                self._opened(found)
            waiting += _always_evaluated(found)

    def refused(self, condition: Node) -> None:
        """Read a condition under which the program fails: missing, or of another type."""
        condition = condition.inner
        if condition.kind == "unary_expression" and condition["operator"].kind == "!":
            self._negated(condition["argument"].inner)
        elif condition.kind == "binary_expression":
            left, right = condition["left"], condition["right"]
            operator = condition["operator"].kind
            if operator == "||":
                self.refused(left)
                self.refused(right)
            elif operator in _ABSENT and right.inner.kind in ("null", "undefined"):
                self._present(left)
            elif operator in _PRESENT:
                self._typed(left.inner, right)

    def _negated(self, node: Node) -> None:
        self._present(node)
        if node.kind == "call_expression" and self._tree.text(node["function"]) == "Array.isArray":
            for given in node["arguments"].children[:1]:
                self._of_type(given, "array")

    def _typed(self, asking: Node, other: Node) -> None:
        """Read `typeof P !== "string"`."""
        is_asking = asking.kind == "unary_expression" and asking["operator"].kind == "typeof"
        name = json_value(self._uses.origins, other) if is_asking else None
        if name in ("boolean", "number", "string"):
            self._of_type(asking["argument"], str(name))

    def _opened(self, member: Node) -> None:
        whole = member.operand
        if whole is None or _is_optional(member):
            return
        self._present(whole)
        called = member.above.kind == "call_expression" and member.field == "function"
        method = METHODS.get(str(self._uses.origins.key(member))) if called else None
        if method is not None:
            self._of_type(whole, method)

    def _of_type(self, node: Node, name: str) -> None:
        path = self._present(node)
        if path is not None:
            self.found.types.setdefault(path, set()).add(name)

    def _present(self, node: Node) -> Path | None:
        paths = list(self._uses.paths(node))
        if len(paths) != 1 or not paths[0] or None in paths[0]:
            return None
        self.found.present.add(paths[0])
        return paths[0]


def _always_evaluated(node: Node) -> Iterator[Node]:
    """Yield the parts of a node that are evaluated whenever it is."""
    kind = node.kind
    if kind in FUNCTIONS or kind in CLASSES or kind == "assignment_pattern":
        return
    if kind == "ternary_expression":
        yield node["condition"]
    elif (
        kind == "binary_expression" and node["operator"].kind in _SHORT
    ) or kind == "augmented_assignment_expression":
        yield node["left"]
    elif _is_optional(node):
        yield from filter(None, [node.operand])
    else:
        yield from node.children


def _is_optional(node: Node) -> bool:
    """Whether a chain may end before this member or call."""
    found: Node | None = node
    while found is not None and (found.kind in MEMBERS or found.kind == "call_expression"):
        if found.child("optional_chain") is not None:
            return True
        found = found.operand
    return False
