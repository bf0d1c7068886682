"""Parameters pass (A8): what the caller may hand in, as a JSON Schema."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pydantic import JsonValue

from pml_analyzer.domain.arguments import parameter_path
from pml_analyzer.domain.origins import MEMBERS, Origins
from pml_analyzer.domain.values import Constant, FromArguments, Origin
from pml_analyzer.syntax.patterns import Path
from pml_analyzer.syntax.tree import WRAPPERS, Node
from pml_common.contracts.structure import Argument, ParameterArgument
from pml_common.contracts.tool import JsonObject, ToolDefinition

_COMPARING: Final = frozenset({"==", "===", "!=", "!==", "<", "<=", ">", ">="})
_DEFAULTING: Final = frozenset({"??", "||", "??=", "||="})
_TOLD_BY_TOOLS: Final = ("type", "description", "enum", "format")
_OPERATING: Final = frozenset({"augmented_assignment_expression", "binary_expression"})
_TESTED: Final = frozenset({("if_statement", "condition"), ("ternary_expression", "condition")})


@dataclass
class _Parameter:
    """What the uses of one parameter say of it."""

    offset: int
    required: bool = True
    default: Constant | None = None
    types: set[str] = field(default_factory=set[str])
    told: list[JsonObject] = field(default_factory=list[JsonObject])

    def has_default(self, value: Origin | None) -> None:
        """It may be left out, and is then `value`, where that is known."""
        self.required = False
        if isinstance(value, Constant) and value.value is not None:
            self.default = value
            self.types.add(value.type)

    def schema(self) -> JsonObject:
        """Its JSON Schema: what tools say of it before what its uses tell."""
        found: JsonObject = {}
        for key in _TOLD_BY_TOOLS:
            said = [schema[key] for schema in self.told if key in schema]
            if said and all(value == said[0] for value in said):
                found[key] = said[0]
        if "type" not in found and len(self.types) == 1 and not self.told:
            found["type"] = next(iter(self.types))
        if self.default is not None:
            found["default"] = self.default.value
        return found


def free_parameters(origins: Origins) -> list[str]:
    """Free names that stand for parameters, in the order they are met."""
    names: dict[str, None] = {}
    for node in origins.scopes.free:
        origin = origins.of(node)
        if isinstance(origin, FromArguments) and origin.path:
            names[origins.tree.name(node)] = None
    return list(names)


def parameters_schema(
    origins: Origins, given: Iterable[tuple[ToolDefinition, Mapping[str, Argument]]]
) -> JsonObject:
    """The schema of the program's arguments; `given` are its calls' tools and arguments."""
    found: dict[str, _Parameter] = {}
    for name, node, whole in _uses(origins):
        parameter = found.setdefault(name, _Parameter(node.start))
        parameter.offset = min(parameter.offset, node.start)
        if whole:
            _read_use(origins, node, parameter)
    for tool, arguments in given:
        for key, argument in arguments.items():
            if isinstance(argument, ParameterArgument) and argument.parameter_name in found:
                found[argument.parameter_name].told += _told(tool, key)
    ordered = sorted(found.items(), key=lambda item: item[1].offset)
    properties: dict[str, JsonValue] = {name: known.schema() for name, known in ordered}
    required: list[JsonValue] = [name for name, known in ordered if known.required]
    return {"type": "object", "properties": properties, "required": required}


def _told(tool: ToolDefinition, key: str) -> list[JsonObject]:
    properties = tool.input_schema.get("properties")
    schema = properties.get(key) if isinstance(properties, dict) else None
    return [schema] if isinstance(schema, dict) else []


def _uses(origins: Origins) -> Iterator[tuple[str, Node, bool]]:
    """Every expression or declared name that is one parameter, or (False) a part of one."""
    scopes = origins.scopes
    for node in scopes.free:
        yield from _use(origins, node, parameter_path(origins, node))
    for binding in scopes.bindings:
        path = parameter_path(origins, binding.node)
        for node in (binding.node, *binding.uses) if path is not None else ():
            yield from _use(origins, node, path)


def _use(origins: Origins, node: Node, path: Path | None) -> Iterator[tuple[str, Node, bool]]:
    if path == ():  # all arguments: which one is said by the member that opens them
        node = _outside(node)
        above = node.above
        if above.kind in MEMBERS and above.operand is node:
            node, path = above, (origins.key(above),)
    name = path[0] if path else None
    if path and isinstance(name, str):
        yield name, node, len(path) == 1


def _outside(node: Node) -> Node:
    """The widest wrapper round an expression."""
    while node.above.kind in WRAPPERS:
        node = node.above
    return node


def _read_use(origins: Origins, node: Node, parameter: _Parameter) -> None:
    binding = origins.scopes.binding(node)
    if binding is not None and binding.node is node:
        for part in binding.parts:
            if part.is_default and part.value is not None:
                parameter.has_default(origins.of(part.value))
    node = _outside(node)
    parent = node.above
    if (parent.kind, node.field) in _TESTED or parent.kind == "unary_expression":
        parameter.required = False
    if parent.kind in MEMBERS and parent.operand is node and parent.child("optional_chain"):
        parameter.required = False
    if parent.kind in _OPERATING:
        _read_operator(origins, parent["operator"].kind, node, parent, parameter)


def _read_operator(
    origins: Origins, operator: str, node: Node, parent: Node, parameter: _Parameter
) -> None:
    value = origins.of(parent["right" if node.field == "left" else "left"])
    if operator in _DEFAULTING and node.field == "left":
        parameter.has_default(value)
    elif operator == "&&" and node.field == "left":
        parameter.required = False
    elif operator in _COMPARING and isinstance(value, Constant):
        if value.type == "null":
            parameter.required = False
        else:
            parameter.types.add(value.type)
