"""Evidence pass: constraints on parts of the arguments, from each of their uses."""

from collections.abc import Callable, Mapping
from typing import Final

from pml_analysis.names.bindings import Binding
from pml_analysis.names.constants import json_value, listed_values
from pml_analysis.names.origins import Origins
from pml_analysis.names.values import Constant, Origin, constant
from pml_analysis.parameters.annotations import Annotation, read_annotation
from pml_analysis.parameters.method_types import (
    ARITHMETIC,
    ASKING,
    COMPARING,
    DEMANDING,
    METHODS,
    SUGGESTING,
)
from pml_analysis.parameters.parameter_uses import MAX_PATH, SAME_VALUE, ParameterUses
from pml_analysis.parameters.shapes import Shape
from pml_analysis.syntax.node_kinds import CASTS, CONDITIONALS, MEMBERS
from pml_analysis.syntax.patterns import Path
from pml_analysis.syntax.tree import Node

_TESTED: Final = frozenset((kind, "condition") for kind in CONDITIONALS)
_DEFAULTING: Final = frozenset({"??", "||", "??=", "||="})
_EQUAL: Final = frozenset({"==", "===", "!=", "!=="})
_UNDEFINED: Final = constant("undefined")
_LENGTH: Final = "length"
_LOOKING_UP: Final = frozenset({"has", "includes", "indexOf"})


def read_uses(uses: ParameterUses) -> Shape:
    """Collect the constraints from all uses of the arguments."""
    reader = _Reader(uses.origins)
    for pattern, path in uses.forwarded:
        reader.received(pattern, path)
    for node, path in uses:
        binding = uses.origins.scopes.binding(node)
        if _LENGTH in path:
            reader.arguments.at(path[: path.index(_LENGTH)], node.start).indexed = True
        elif binding is not None and binding.node is node:
            reader.declared(binding, path)
        else:
            reader.used(node, path)
    return reader.arguments


class _Reader:
    def __init__(self, origins: Origins) -> None:
        self.arguments = Shape(0)
        self._origins = origins
        self._tree = origins.tree
        self._declared = {binding.name for binding in origins.scopes.bindings}

    def declared(self, binding: Binding, path: Path) -> None:
        """Read the declaration of a name that holds a part of the arguments, or its default."""
        start = binding.node.start
        self.arguments.at(path, start)
        for part in binding.parts:
            if part.is_default and part.value is not None:
                owner = path[: len(path) - len(part.path)]
                if owner and isinstance(owner[-1], str):  # not of one element of many
                    value = json_value(self._origins, part.value)
                    self.arguments.at(owner, start).has_default(value)

    def received(self, pattern: Node, path: Path) -> None:
        """Read the annotation of a function's parameter that gets a part of the arguments."""
        annotation = pattern.above.child("type")
        if annotation is not None and pattern.field == "pattern":
            shape = self.arguments.at(path, pattern.start)
            self._state(shape, self._tree.text(annotation))
            if pattern.above.kind == "optional_parameter":
                shape.may_be_absent = True

    def used(self, node: Node, path: Path) -> None:
        """Read an expression that is a part of the arguments, and the members that open it
        further."""
        while len(path) <= MAX_PATH:
            node, casts = self._outside(node)
            above = node.above
            is_written = (above.kind, node.field) == ("assignment_expression", "left")
            shape = Shape(0) if is_written else self.arguments.at(path, node.start)
            for text in casts:
                self._state(shape, text)
            if above.kind not in MEMBERS or above.operand is not node:
                self._read(node, shape)
                return
            shape.needed = True
            shape.may_be_absent |= above.child("optional_chain") is not None
            key = self._origins.key(above)
            if _is_called(above):
                shape.certain |= {METHODS.get(str(key), "")} - {""}
                return
            if key == _LENGTH:
                shape.indexed = True
                return
            node, path = above, (*path, key)

    def _outside(self, node: Node) -> tuple[Node, list[str]]:
        """Return the widest expression of the same value, and the types that it is cast to."""
        casts: list[str] = []
        while node.above.kind in SAME_VALUE:
            node = node.above
            if node.kind in CASTS and len(node.children) > 1:
                casts.append(self._tree.text(node.children[1]))
        return node, casts

    def _read(self, node: Node, shape: Shape) -> None:
        above = node.above
        if (above.kind, node.field) in _TESTED:
            shape.may_be_absent = True
        elif node.kind != "shorthand_property_identifier" and above.kind != "pair":
            shape.needed = True
            read = _CONTEXTS.get(above.kind)
            if read is not None:
                read(self, node, above, shape)

    def _state(self, shape: Shape, text: str, *, is_present: bool = False) -> None:
        found = read_annotation(text)
        if found is not None:
            _state(found, shape, is_present=is_present)

    def operand(self, node: Node, above: Node, shape: Shape) -> None:
        is_left = node.field == "left"
        other = above["right" if is_left else "left"]
        operator = above["operator"].kind
        plain = operator.removesuffix("=") if above.kind.startswith("augmented") else operator
        if operator in _DEFAULTING:
            if is_left:
                shape.has_default(json_value(self._origins, other))
        elif plain == "&&":
            shape.may_be_absent |= is_left
        elif plain in COMPARING:
            self._compared(plain, self._origins.of(other), shape)
        else:
            self._computed(plain, self._origins.of(other), shape, is_left=is_left)

    def _compared(self, operator: str, other: Origin, shape: Shape) -> None:
        if not isinstance(other, Constant):
            return
        if operator in _EQUAL:
            shape.is_compared(other.value)
        elif other.type != "null":
            shape.certain.add(other.type)

    def _computed(self, operator: str, other: Origin, shape: Shape, *, is_left: bool) -> None:
        if operator in ARITHMETIC:
            shape.certain.add("number")
        elif operator == "+" and isinstance(other, Constant):
            shape.likely |= {other.type} & {"number", "string"}
        elif operator == "in":
            shape.likely.add("string" if is_left else "object")
        elif operator == "instanceof":
            shape.is_asked = True

    def given(self, node: Node, above: Node, shape: Shape) -> None:
        """Read an argument of one of JavaScript's own functions."""
        callee = above.above.child("function") or above.above.child("constructor")
        if callee is None or callee.kind not in ("identifier", *MEMBERS):
            return
        method = callee.child("property")
        if method is not None and self._tree.name(method) in _LOOKING_UP:
            for value in listed_values(self._origins, callee["object"]) or ():
                shape.is_compared(value)
        name = self._tree.text(callee)
        owner = name.partition(".")[0]
        if owner not in self._declared and (owner == "Math" or above.children[0] is node):
            shape.is_asked |= name in ASKING
            shape.certain |= {DEMANDING.get(name) or DEMANDING.get(owner, "")} - {""}
            shape.likely |= {SUGGESTING.get(name, "")} - {""}

    def iterated(self, node: Node, above: Node, shape: Shape) -> None:
        if node.field == "right":
            shape.likely.add("array" if above["operator"].kind == "of" else "object")

    def spread(self, _: Node, above: Node, shape: Shape) -> None:
        shape.likely.add("object" if above.above.kind == "object" else "array")

    def switched(self, _: Node, above: Node, shape: Shape) -> None:
        for clause in above["body"].children:
            value = clause.child("value")
            if value is not None:
                self._compared("===", self._origins.of(value), shape)

    def printed(self, _: Node, above: Node, shape: Shape) -> None:
        if above.above.field != "arguments":  # a tag gets the values themselves
            shape.likely.add("string")

    def signed(self, _: Node, above: Node, shape: Shape) -> None:
        operator = above["operator"].kind
        if operator in ("-", "~"):
            shape.certain.add("number")
        elif operator in ("!", "typeof"):
            shape.may_be_absent = True
            shape.is_asked |= operator == "typeof" and not self._asks_for_absence(above)

    def _asks_for_absence(self, asking: Node) -> bool:
        """Whether it is `typeof args.x === "undefined"`."""
        compared = asking.above
        return compared.kind == "binary_expression" and any(
            self._origins.of(side) == _UNDEFINED for side in compared.children
        )

    def counted(self, _: Node, __: Node, shape: Shape) -> None:
        shape.certain.add("number")

    def named(self, _: Node, above: Node, shape: Shape) -> None:
        annotation = above.child("type")
        if annotation is not None:
            is_always_reached = above.above.above is self._tree.root
            self._state(shape, self._tree.text(annotation), is_present=is_always_reached)


def _state(said: Annotation, shape: Shape, *, is_present: bool) -> None:
    """Note what an annotation says of a value; `is_present`: also that it is always there."""
    shape.certain.add(said.type)
    shape.annotated.add(said.type)
    shape.may_be_absent |= said.may_be_absent
    shape.is_annotated_present |= is_present and not said.may_be_absent
    if said.items is not None:
        items = shape.at((None,), shape.offset)
        items.certain.add(said.items)
        items.annotated.add(said.items)
        items.is_annotated_present = True
    for name, inner in said.fields.items():
        _state(inner, shape.at((name,), shape.offset), is_present=True)


_CONTEXTS: Final[Mapping[str, Callable[[_Reader, Node, Node, Shape], None]]] = {
    "arguments": _Reader.given,
    "augmented_assignment_expression": _Reader.operand,
    "binary_expression": _Reader.operand,
    "for_in_statement": _Reader.iterated,
    "spread_element": _Reader.spread,
    "switch_statement": _Reader.switched,
    "template_substitution": _Reader.printed,
    "unary_expression": _Reader.signed,
    "update_expression": _Reader.counted,
    "variable_declarator": _Reader.named,
}
"""Constraints on a value, by the construct that contains it."""


def _is_called(member: Node) -> bool:
    while member.above.kind in SAME_VALUE:
        member = member.above
    return member.above.kind == "call_expression" and member.field == "function"
