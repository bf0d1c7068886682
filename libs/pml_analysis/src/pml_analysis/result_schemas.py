"""Schemas of programs' results, from their text and the schemas of what they call: the public entry
point.

Followed are object and list literals, choices, and parts of the results of tools and of the
caller's arguments. Anything else may be any value: the empty schema.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import JsonValue

from pml_analysis.capability_reading import tree_of
from pml_analysis.names.bindings import Binding
from pml_analysis.names.choices import choices
from pml_analysis.names.entries import entries, is_plain, is_plain_list
from pml_analysis.names.origins import CHAIN, Origins
from pml_analysis.names.scopes import resolve_scopes
from pml_analysis.names.values import Constant, FromArguments, FromCall
from pml_analysis.structure.calls import find_calls
from pml_analysis.syntax.node_kinds import FUNCTIONS
from pml_analysis.syntax.tree import Node, Tree
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_common.provides.json_schema import described

NOTHING: Final[Mapping[str, JsonValue]] = {"type": "null"}
"""The schema of the result of a program that returns nothing."""

_MAX_DEPTH: Final = 12

_TYPES: Final = {
    "!": "boolean",
    "typeof": "string",
    **dict.fromkeys(("===", "!==", "==", "!=", "<", "<=", ">", ">=", "in"), "boolean"),
    "instanceof": "boolean",
    **dict.fromkeys(("-", "*", "/", "%", "**"), "number"),
}
"""Types of the results of operators, whatever their operands."""


def result_schema(
    code: str, *, tools: Sequence[ToolDefinition], parameters: JsonObject
) -> JsonObject:
    """Return the schema of what a program returns; `parameters` is that of its arguments. Empty
    where nothing is known of it, also for a text that is no program."""
    tree = tree_of(code)
    if tree is None:
        return {}
    return _Results(tree, tools, parameters).whole()


class _Results:
    """Reads the values that one program returns."""

    def __init__(self, tree: Tree, tools: Sequence[ToolDefinition], parameters: JsonObject) -> None:
        self._tree = tree
        self._origins = Origins(tree, resolve_scopes(tree))
        sites = find_calls(tree, self._origins).sites
        self._called = {site.call.index: site.tool_id for site in sites}
        self._outputs = {
            tool.tool_id: described(
                tool.learned_output if tool.output_schema is None else tool.output_schema
            )
            for tool in tools
        }
        self._parameters = described(parameters)
        self._changed = self._changed_names()

    def whole(self) -> JsonObject:
        """Return the schema of all that is returned; the end without a return does not count beside
        one."""
        returns = _returns_in(self._tree.root)
        return _any_of(
            [
                dict(NOTHING) if each.operand is None else self._of(each.operand, 0)
                for each in returns
            ]
            or [dict(NOTHING)]
        )

    def _of(self, node: Node, depth: int) -> JsonObject:
        node = node.inner
        if depth > _MAX_DEPTH:
            return {}
        held = self._held(node)
        if held is not None:
            return self._of(held, depth + 1)
        if is_plain(node):
            return self._object(node, depth + 1)
        if node.kind == "array" and is_plain_list(node):
            items = [self._of(each, depth + 1) for each in node.children if each.kind != ","]
            return {"type": "array", **({"items": _any_of(items)} if items else {})}
        several = choices(node)
        if several:
            return _any_of([self._of(each, depth + 1) for each in several])
        return self._operated(node) or self._traced(node)

    def _held(self, node: Node) -> Node | None:
        """Return the value of a name that is assigned once and used here alone: nothing changes
        it."""
        binding = self._origins.scopes.binding(node) if node.kind == "identifier" else None
        if binding is None or binding.starts_absent or len(binding.uses) > 1:
            return None
        parts = [part.value for part in binding.parts if not (part.path or part.is_default)]
        return parts[0] if len(binding.parts) == len(parts) == 1 else None

    def _object(self, node: Node, depth: int) -> JsonObject:
        properties: dict[str, JsonValue] = {}
        for entry in entries(self._origins, node):
            if entry.key is None:
                return {"type": "object"}
            properties[entry.key] = self._of(entry.value, depth)
        return {"type": "object", "properties": properties, "required": [*properties]}

    def _operated(self, node: Node) -> JsonObject | None:
        if node.kind == "template_string":
            return {"type": "string"}
        operator = node.child("operator")
        kind = None if operator is None else _TYPES.get(operator.kind)
        return None if kind is None else {"type": kind}

    def _traced(self, node: Node) -> JsonObject:
        """Return the schema of a constant, or of a part of what a tool returns or a caller
        passes."""
        if self._is_changed(node):
            return {}
        match self._origins.of(node):
            case Constant(type=kind):
                return {"type": kind}
            case FromArguments(path=path):
                return self._parameters.at(path).schema
            case FromCall(call=call, path=path):
                output = self._outputs.get(self._called.get(call.index, ""))
                return {} if output is None else output.at(path).schema
            case _:
                return {}

    def _is_changed(self, node: Node) -> bool:
        """Whether the program writes into the value that a name holds, of which this is a part."""
        binding = self._root(node)
        return binding is not None and binding.node.index in self._changed

    def _changed_names(self) -> set[int]:
        written = (self._root(each.node) for each in self._origins.scopes.member_writes)
        return {binding.node.index for binding in written if binding is not None}

    def _root(self, node: Node) -> Binding | None:
        while node.kind in CHAIN and node.operand is not None:
            node = node.operand
        return self._origins.scopes.binding(node)


def _any_of(schemas: Sequence[JsonObject]) -> JsonObject:
    """Return the schema of values of any of these."""
    several: list[JsonValue] = []
    for schema in schemas:
        if not schema:
            return {}
        if schema not in several:
            several.append(schema)
    return schemas[0] if len(several) == 1 else {"anyOf": several}


def _returns_in(body: Node) -> list[Node]:
    """Return the program's own return statements, in source order."""
    found: list[Node] = []
    waiting = [body]
    while waiting:
        node = waiting.pop()
        if node.kind == "return_statement":
            found.append(node)
        elif node.kind not in FUNCTIONS:
            waiting.extend(reversed(node.children))
    return found
