"""Built-ins pass: the language's own objects that expressions stand for."""

from typing import Final

from pml_analysis.names.globals import FORBIDDEN, GLOBALS
from pml_analysis.names.origins import Origins
from pml_analysis.syntax.node_kinds import MEMBERS
from pml_analysis.syntax.patterns import Part
from pml_analysis.syntax.tree import Node

Dotted = tuple[str, ...]
"""Example: `("Array", "prototype")`."""

_PROTOTYPE_OF: Final = (("Object", "getPrototypeOf"), ("Reflect", "getPrototypeOf"))
_NOT_OBJECTS: Final = frozenset({"Infinity", "NaN", "arguments", "undefined"})
_MAX_LENGTH: Final = 8
_MAX_NAMES: Final = 60
"""Maximum number of names in a row that are followed."""


def is_prototype(path: Dotted | None) -> bool:
    """Whether a built-in is a prototype, or a part of one."""
    return path is not None and ("prototype" in path or path[:2] in _PROTOTYPE_OF)


class Builtins:
    """Resolves expressions of one program to built-ins, through names, parts of objects and
    wrappers."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._known: dict[int, Dotted | None] = {}

    def path(self, node: Node) -> Dotted | None:
        """Return the built-in that an expression evaluates to, under any name; None for all else.

        The result of `Object.getPrototypeOf(…)` counts as one.
        """
        return self._path(node, _MAX_NAMES)

    def _path(self, node: Node, names: int) -> Dotted | None:
        keys: list[str] = []
        node = node.inner
        while node.kind in MEMBERS:
            key = self._origins.key(node)
            if not isinstance(key, str) or len(keys) > _MAX_LENGTH:
                return None
            keys.append(key)
            node = node.children[0].inner
        start = self._start(node, names)
        return (*start, *reversed(keys)) if start is not None else None

    def _start(self, node: Node, names: int) -> Dotted | None:
        if node.kind == "call_expression" and names:
            path = self._path(node["function"], names - 1)
            return path if path in _PROTOTYPE_OF else None
        if not node.kind.endswith("identifier"):
            return None
        binding = self._origins.scopes.binding(node)
        if binding is None:
            name = self._origins.tree.name(node)
            is_object = name in GLOBALS or name in FORBIDDEN
            return (name,) if is_object and name not in _NOT_OBJECTS else None
        at = binding.node.index
        if at not in self._known:
            self._known[at] = None  # ends a name that refers to itself
            known = len(binding.parts) == 1 and names
            self._known[at] = self._part(binding.parts[0], names - 1) if known else None
        return self._known[at]

    def _part(self, part: Part, names: int) -> Dotted | None:
        start = self._path(part.value, names) if part.value is not None else None
        if start is None or len(part.path) > _MAX_LENGTH:
            return None
        keys = [step for step in part.path if isinstance(step, str)]
        return (*start, *keys) if len(keys) == len(part.path) else None
