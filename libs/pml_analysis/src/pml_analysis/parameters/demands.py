"""Demands pass: parts of the arguments without which the program fails, whatever else happens.

Only what every run reaches counts: statements of the program itself, none after one that returns,
and of those what is always evaluated. A call of a tool fails without what its inputs require.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pml_analysis.names.choices import condition_of
from pml_analysis.names.constants import json_value
from pml_analysis.names.entries import entries
from pml_analysis.parameters.allowed_values import throws
from pml_analysis.parameters.method_types import METHODS
from pml_analysis.parameters.parameter_uses import ParameterUses
from pml_analysis.structure.calls import CallSite
from pml_analysis.structure.marks import combinator
from pml_analysis.syntax.node_kinds import CLASSES, FUNCTIONS, MEMBERS, WRAPPERS
from pml_analysis.syntax.patterns import Path
from pml_analysis.syntax.tree import Node, Tree, returns
from pml_common.provides.json_schema import Described

_ALWAYS: Final = frozenset(
    {"expression_statement", "lexical_declaration", "return_statement", "variable_declaration"}
)
_ABSENT: Final = frozenset({"==", "==="})
_PRESENT: Final = frozenset({"!=", "!=="})
_BINARY: Final = frozenset({"augmented_assignment_expression", "binary_expression"})
_SHORT: Final = frozenset({"&&", "||", "??"})
_WITH_DEFAULT: Final = frozenset({"assignment_pattern", "object_assignment_pattern"})
_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
"""All but null."""


@dataclass(slots=True)
class Demands:
    """The parts that must be there, and those that must be of a type."""

    present: set[Path] = field(default_factory=set[Path])
    types: dict[Path, set[str]] = field(default_factory=dict[Path, set[str]])


def demands_of(uses: ParameterUses, called: Mapping[CallSite, Described]) -> Demands:
    """Collect the demands of a program; `called` are the calls of tools, with the tools' inputs."""
    reader = _Reader(uses, {site.call.index: (site, called[site]) for site in called})
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
    def __init__(
        self, uses: ParameterUses, called: Mapping[int, tuple[CallSite, Described]]
    ) -> None:
        self.found = Demands()
        self._uses = uses
        self._tree = uses.origins.tree
        self._called = called

    def evaluated(self, node: Node) -> None:
        """Read an expression or statement that is always evaluated."""
        waiting = [node]
        while waiting:
            found = waiting.pop()
            if found.kind in MEMBERS:
                self._opened(found)
            elif found.index in self._called and _ends_the_run(self._tree, found):
                self._required(*self._called[found.index])
            waiting += _always_evaluated(found)

    def _required(self, site: CallSite, inputs: Described) -> None:
        """Read the arguments of a call whose tool refuses null for them, and to go without."""
        fields = {
            name: inputs.properties[name].schema
            for name in inputs.required & inputs.properties.keys()
        }
        needed = {
            name
            for name, schema in fields.items()
            if schema.get("type") in _TYPES and "default" not in schema
        }
        given = {} if site.argument is None else self._given(site.argument)
        for name in sorted(needed if None in given else needed & given.keys()):
            if name in given:
                self._present(given[name])
            else:
                self.found.present.add((name,))

    def _given(self, argument: Node) -> dict[str | None, Node]:
        """Return the values of an object by name, under None the arguments as a whole; nothing
        where others may take their place."""
        found: dict[str | None, Node] = {}
        for entry in entries(self._uses.origins, argument):
            is_whole = entry.computed is None and list(self._uses.paths(entry.value)) == [()]
            if entry.key is None and not is_whole:
                return {}
            found[entry.key] = entry.value
        return found

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


def _ends_the_run(tree: Tree, call: Node) -> bool:
    """Whether the program fails with a call that it always makes: it waits for it, alone or among
    others, and nothing handles its failure."""
    above = call.above
    while above.kind in WRAPPERS:
        above = above.above
    if above.kind == "array" and above.above.kind == "arguments":
        together = above.above.above
        return combinator(tree, together) == "all" and _ends_the_run(tree, together)
    return above.kind in ("await_expression", "return_statement")


def _always_evaluated(node: Node) -> Iterator[Node]:
    """Yield the parts of a node that are evaluated whenever it is."""
    kind = node.kind
    if kind in FUNCTIONS or kind in CLASSES or kind in _WITH_DEFAULT:
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
