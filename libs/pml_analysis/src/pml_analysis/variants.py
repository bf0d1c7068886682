"""Programs of one shape as one program with parameters: the public entry point."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import JsonValue

from pml_analysis.arguments.data_flow_edges import values_in
from pml_analysis.capability_reading import shape_of
from pml_analysis.names.origins import Origins
from pml_analysis.names.scopes import resolve_scopes
from pml_analysis.parameters.lifting import INHERITED, arguments_root, free_name, key_of
from pml_analysis.parameters.literal_names import name_of
from pml_analysis.parameters.parameter_uses import ParameterUses
from pml_analysis.parameters.parameters import parameters_schema
from pml_analysis.parameters.shapes import is_among, type_of
from pml_analysis.running.program_shape import ProgramShape
from pml_analysis.structure.calls import find_calls
from pml_analysis.structure.units import find_units
from pml_analysis.syntax.edits import Wrap, apply
from pml_analysis.syntax.node_kinds import WRAPPERS
from pml_analysis.syntax.tree import Node, Tree
from pml_common.contracts.tool import JsonObject

_LEAST: Final = 2
_CASTS: Final = WRAPPERS - {"parenthesized_expression"}
_DELIMITED: Final = frozenset(
    {
        "arguments",
        "array",
        "pair",
        "parenthesized_expression",
        "return_statement",
        "variable_declarator",
    }
)
"""Constructs in which `a ?? b` needs no parentheses."""


class NotLiftable(ValueError):
    """The programs cannot become one; says why."""


@dataclass(frozen=True)
class LiftedVariants:
    """One program for several. `arguments[i]` makes it behave as the i-th of them; without
    arguments it behaves as the first, whose literals are the defaults."""

    code: str
    parameters_schema: JsonObject
    arguments: Sequence[Mapping[str, JsonValue]]

    @property
    def parameters(self) -> Sequence[str]:
        """The new parameters, in the order of their literals."""
        return list(self.arguments[0])


def lift_variants(sources: Sequence[str]) -> LiftedVariants:
    """Lift the literals that vary between programs of one shape into parameters of the first, whose
    text stays as it is otherwise. Raises NotLiftable.

    A parameter is named after what takes its literal, numbered if that is taken: `path`, `path_2`.
    Literals with the same values in every program are one parameter.
    """
    if len(sources) < _LEAST:
        raise NotLiftable("it takes two programs to see which literals vary")
    shapes = [_shape(at, code) for at, code in enumerate(sources, 1)]
    for at, shape in enumerate(shapes, 1):
        if shape.shape_hash != shapes[0].shape_hash:
            raise NotLiftable(f"program {at} differs from the first by more than literals")
    code, values = _lift(sources[0], shapes)
    after = shape_of(code)
    if after is None or (after.targets, after.is_dynamic) != (shapes[0].targets, False):
        raise NotLiftable("a literal that varies chooses what is called")
    arguments = [{name: each[at] for name, each in values.items()} for at in range(len(shapes))]
    return LiftedVariants(code, _schema(after.tree, values), arguments)


def _shape(at: int, code: str) -> ProgramShape:
    shape = shape_of(code)
    if shape is None:
        raise NotLiftable(f"program {at} does not parse")
    return shape


def _lift(
    code: str, shapes: Sequence[ProgramShape]
) -> tuple[str, Mapping[str, Sequence[JsonValue]]]:
    """Return the lifted program, and the values of its parameters by program."""
    varying = _varying(shapes)
    tree = shapes[0].tree
    scopes = resolve_scopes(tree)
    origins, units = Origins(tree, scopes), find_units(tree, scopes)
    root = arguments_root(origins)
    if varying and (root is None or not ParameterUses(origins, units).all_known()):
        raise NotLiftable("the program uses all of its arguments at once: any name has a use")
    passed = _passed(origins)
    names: dict[str, list[JsonValue]] = {}
    taken = {*_properties(parameters_schema(origins, units, (), {})), *INHERITED}
    wraps: list[Wrap] = []
    for values, literals in varying:
        name = free_name(name_of(origins, units, literals[0]), taken)
        taken.add(name)
        names[name] = values
        wraps += (_wrap(node, f"{root}{key_of(name)}", node.index in passed) for node in literals)
    return apply(code, wraps).text, names


def _varying(shapes: Sequence[ProgramShape]) -> Sequence[tuple[list[JsonValue], list[Node]]]:
    """Return the values that vary, by program, and the literals of the first that have them."""
    found: dict[str, tuple[list[JsonValue], list[Node]]] = {}
    for same_place in zip(*(shape.literals for shape in shapes), strict=True):
        values = [literal.value for literal in same_place]
        if not all(is_among(value, values[:1]) for value in values):
            _, nodes = found.setdefault(json.dumps(values), (values, []))
            nodes.append(same_place[0].node)
    return list(found.values())


def _passed(origins: Origins) -> frozenset[int]:
    """Return the values in arguments of tools and capabilities, which nothing changes."""
    sites = find_calls(origins.tree, origins).sites
    return frozenset(
        value.node.inner.index for site in sites for value in values_in(origins, site.argument)
    )


def _wrap(literal: Node, parameter: str, is_passed: bool) -> Wrap:
    """Replace a literal by a parameter that has it as default. A list that the program may change
    is copied, as each evaluation of the literal makes a new one."""
    whole = literal
    while whole.above.kind in _CASTS:
        whole = whole.above
    if literal.kind == "array" and not is_passed:
        return Wrap(whole.start, whole.end, f"[...({parameter} ?? ", ")]")
    before, after = ("", "") if whole.above.kind in _DELIMITED else ("(", ")")
    return Wrap(whole.start, whole.end, f"{before}{parameter} ?? ", after)


def _schema(tree: Tree, lifted: Mapping[str, Sequence[JsonValue]]) -> JsonObject:
    """Return the schema of a lifted program, which accepts all values of its new parameters."""
    scopes = resolve_scopes(tree)
    schema = parameters_schema(Origins(tree, scopes), find_units(tree, scopes), (), {})
    properties = _properties(schema)
    for name, values in lifted.items():
        properties[name] = {**_accepting(values), "default": values[0]}
    return {**schema, "properties": properties}


def _accepting(values: Sequence[JsonValue]) -> JsonObject:
    """Return the schema of values: their type, if they have one."""
    types = {type_of(value) for value in values}
    if len(types) > 1:
        return {}
    items = [item for value in values if isinstance(value, list) for item in value]
    inner = _accepting(items) if items else {}
    return {"type": types.pop(), **({"items": inner} if inner else {})}


def _properties(schema: JsonObject) -> JsonObject:
    properties = schema["properties"]
    return properties if isinstance(properties, dict) else {}
