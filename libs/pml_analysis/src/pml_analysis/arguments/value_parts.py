"""A part of the value of an expression, and where to look for it."""

from dataclasses import dataclass, replace
from typing import Final, Literal

from pydantic import JsonValue

from pml_analysis.names.bindings import Binding
from pml_analysis.structure.expansion import Instance
from pml_analysis.syntax.node_kinds import FUNCTIONS, INLINE_FUNCTIONS
from pml_analysis.syntax.patterns import Path, Step, key_of
from pml_analysis.syntax.tree import Node, Tree

_NOT_DATA: Final = frozenset(
    {
        *("__proto__", "constructor", "hasOwnProperty", "isPrototypeOf", "length"),
        *("propertyIsEnumerable", "toLocaleString", "toString", "valueOf"),
    }
)
"""Members that values have and JSON does not express."""

_LAST_INDEX: Final = 2**32 - 2


Extraction = Literal["value", "element", "resolved"]
"""The way a name gets its value from another: itself or parts of it, an element of it, or the value
it resolves to."""


@dataclass(frozen=True, slots=True)
class ValuePart:
    """A part of an expression's value. `is_awaited`: of the value that the promise resolves to."""

    value: Node
    at: Instance
    path: Path = ()
    is_awaited: bool = False
    default: tuple[JsonValue, ...] = ()

    def inside(self, value: Node, path: Path) -> "ValuePart":
        """Return the same part, relative to a value that contains this one."""
        is_awaited = self.is_awaited and not path
        return replace(self, value=value, path=(*path, *self.path), is_awaited=is_awaited)

    def of(self, value: Node, path: Path, taken: Extraction) -> "ValuePart":
        """Return the same part of a name's value, relative to the value that the name is taken
        from."""
        found = self.inside(value, (None, *path) if taken == "element" else path)
        return replace(found, is_awaited=True) if taken == "resolved" else found


def data_key(step: Step) -> Step:
    """Return a step into the JSON data of a value; None for every other."""
    if isinstance(step, int):
        return step if 0 <= step <= _LAST_INDEX else None
    if step is None or step in _NOT_DATA:
        return None
    is_index = step.isascii() and step.isdigit() and str(int(step)) == step
    return data_key(int(step)) if is_index and len(step) <= len(str(_LAST_INDEX)) else step


def data_path(path: Path) -> Path | None:
    """Return a path of such steps; None for every other."""
    found = tuple(map(data_key, path))
    return None if None in found else found


def only_result(function: Node) -> Node | None:
    """Return the one expression that a function certainly returns, if it does not throw."""
    body = function["body"]
    if body.kind != "statement_block":
        return body
    found = _returns_in(body)
    last = body.children[-1] if body.children else None
    return last.operand if last is not None and found == [last] else None


def _returns_in(body: Node) -> list[Node]:
    """Return the return statements of a function's body."""
    found: list[Node] = []
    waiting = [body]
    while waiting:
        node = waiting.pop()
        if node.kind == "return_statement":
            found.append(node)
        elif node.kind not in FUNCTIONS:
            waiting.extend(node.children)
    return found


def is_of_callback(declared: Node) -> bool:
    """Whether a parameter belongs to a function without a name, which only its receiver can
    call."""
    node = declared
    while node.kind not in FUNCTIONS:
        node = node.above
    return node.kind in INLINE_FUNCTIONS and node.child("name") is None


def is_iterated(binding: Binding, value: Node) -> bool:
    """Whether a name is that of a `for` loop over a value."""
    is_fresh = binding.kind in ("const", "let")
    return is_fresh and value.above.kind == "for_in_statement" and value.field == "right"


def is_same_in_rest(tree: Tree, declared: Node, path: Path) -> bool:
    """Whether a part of the rest of an object, `{ a, ...rest }`, is the same part of the whole."""
    pattern = declared.above.above
    if pattern.kind != "object_pattern" or not path:
        return False
    taken: list[Step] = []
    for child in pattern.children[:-1]:
        inner = child.children[0] if child.children else child
        taken.append(key_of(tree, inner))
    return None not in taken and path[0] not in taken and isinstance(path[0], str)
