"""Allowed values pass: parameters whose other values make the program fail.

Only checks that every run reaches count: statements of the program itself, none after one that
returns.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from pydantic import JsonValue

from pml_analysis.names.choices import condition_of
from pml_analysis.names.constants import json_value, listed_values
from pml_analysis.parameters.parameter_uses import ParameterUses
from pml_analysis.syntax.patterns import Path
from pml_analysis.syntax.tree import Node, returns

_Passing = tuple[Path, Sequence[JsonValue]]
"""A part of the arguments, and the values of it that pass a check."""

_EQUAL: Final = frozenset({"==", "==="})
_UNEQUAL: Final = frozenset({"!=", "!=="})
_LOOKING_UP: Final = frozenset({"has", "includes"})


def allowed_values(uses: ParameterUses) -> Iterator[_Passing]:
    """Map such parameters to the values that pass."""
    checks = _Checks(uses)
    for statement in uses.origins.tree.root.children:
        found = checks.of(statement)
        if found is not None:
            yield found
        if returns(statement):
            return


class _Checks:
    def __init__(self, uses: ParameterUses) -> None:
        self._uses = uses
        self._origins = uses.origins
        self._tree = uses.origins.tree

    def of(self, statement: Node) -> _Passing | None:
        """Return the values that a statement accepts, if it throws at all others."""
        if statement.kind == "switch_statement":
            return self._switch(statement)
        if statement.kind != "if_statement":
            return None
        if throws(statement["consequence"]) and statement.child("alternative") is None:
            return self._unless(condition_of(statement))
        return self._chain(statement)

    def _switch(self, statement: Node) -> _Passing | None:
        clauses = statement["body"].children
        others = [clause for clause in clauses if clause.kind == "switch_default"]
        if not any(map(throws, others)):
            return None
        labels = [clause["value"] for clause in clauses if clause.kind == "switch_case"]
        return self._all([self._equal(statement["value"], label) for label in labels])

    def _chain(self, statement: Node) -> _Passing | None:
        """Read `if (P === "a") … else if (P === "b") … else throw …`."""
        found: list[_Passing | None] = []
        while statement.kind == "if_statement":
            found.append(self._when(condition_of(statement)))
            otherwise = statement.child("alternative")
            if otherwise is None:
                return None
            statement = otherwise.children[0]
        return self._all(found) if throws(statement) else None

    def _when(self, condition: Node) -> _Passing | None:
        """Return the values that make a condition true, of one parameter alone."""
        condition = condition.inner
        if condition.kind == "binary_expression":
            left, right = condition["left"], condition["right"]
            operator = condition["operator"].kind
            if operator == "||":
                return self._all([self._when(left), self._when(right)])
            if operator in _EQUAL:
                return self._equal(left, right)
        return self._looked_up(condition) if condition.kind == "call_expression" else None

    def _unless(self, condition: Node) -> _Passing | None:
        """Return the values that make a condition false, of one parameter alone."""
        condition = condition.inner
        if condition.kind == "unary_expression" and condition["operator"].kind == "!":
            return self._when(condition["argument"])
        if condition.kind != "binary_expression":
            return None
        left, right, operator = condition["left"], condition["right"], condition["operator"].kind
        if operator == "&&":
            return self._all([self._unless(left), self._unless(right)])
        return self._equal(left, right) if operator in _UNEQUAL else None

    def _equal(self, side: Node, other: Node) -> _Passing | None:
        path = self._path(side)
        if path is None:
            side, other = other, side
            path = self._path(side)
        if path is None:
            return None
        if other.inner.kind in ("null", "undefined"):  # whether it is given at all
            return path, []
        value = json_value(self._origins, other)
        return None if value is None else (path, [value])

    def _looked_up(self, call: Node) -> _Passing | None:
        """Read `["a", "b"].includes(P)`."""
        callee, given = call["function"], call["arguments"].children
        method = callee.child("property")
        if method is None or self._tree.name(method) not in _LOOKING_UP or len(given) != 1:
            return None
        path, values = self._path(given[0]), listed_values(self._origins, callee["object"])
        return None if path is None or values is None else (path, values)

    def _path(self, node: Node) -> Path | None:
        paths = list(self._uses.paths(node))
        return paths[0] if len(paths) == 1 and paths[0] and None not in paths[0] else None

    def _all(self, found: Sequence[_Passing | None]) -> _Passing | None:
        """Return the union of the accepted values, where all are about the same parameter."""
        known = [one for one in found if one is not None]
        if len(known) != len(found) or len({path for path, _ in known}) != 1:
            return None
        return known[0][0], [value for _, values in known for value in values]


def throws(node: Node) -> bool:
    """Whether a statement or clause always ends in an error."""
    last = node.children[-1] if node.children else node
    is_throw = node.kind == "throw_statement"
    return is_throw or (last.kind == "throw_statement" and not returns(node))
