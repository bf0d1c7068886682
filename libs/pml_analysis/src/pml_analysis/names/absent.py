"""Absent pass: expressions that certainly are `undefined`, which JSON leaves out."""

from typing import Final

from pml_analysis.names.origins import Origins
from pml_analysis.syntax.node_kinds import PATTERN_PARTS
from pml_analysis.syntax.tree import Node

_READ_AS: Final = frozenset({"left", "name", "parameter", "pattern"})


class Absent:
    """Finds such expressions in one program, which may declare a name `undefined` of its own."""

    def __init__(self, origins: Origins) -> None:
        tree = origins.tree
        self._is_own = any(binding.name == "undefined" for binding in origins.scopes.bindings)
        self._is_own = self._is_own or any(
            node.field in _READ_AS or node.above.kind in PATTERN_PARTS
            for node in tree.of("undefined")
        )

    def is_absent(self, node: Node) -> bool:
        """Whether a value is `undefined` in every run."""
        node = node.inner
        if node.kind == "unary_expression":
            return node["operator"].kind == "void"
        return node.kind == "undefined" and not self._is_own
