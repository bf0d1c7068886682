"""Parameters pass: the caller's arguments, as a JSON Schema."""

from collections.abc import Iterable, Mapping, Sequence

from pml_analysis.names.origins import Origins
from pml_analysis.names.values import FromArguments
from pml_analysis.parameters.allowed_values import allowed_values
from pml_analysis.parameters.certain import certain_schema
from pml_analysis.parameters.demands import demands_of
from pml_analysis.parameters.evidence import read_uses
from pml_analysis.parameters.parameter_uses import ParameterUses
from pml_analysis.parameters.schema_hints import SchemaHints
from pml_analysis.parameters.shape_schemas import object_schema
from pml_analysis.structure.calls import CallSite
from pml_analysis.structure.units import Unit
from pml_common.contracts.parameters import CERTAIN
from pml_common.contracts.structure import Argument
from pml_common.contracts.tool import JsonObject
from pml_common.provides.json_schema import Described


def free_parameters(origins: Origins) -> list[str]:
    """Return the free names that stand for parameters, in the order they are met."""
    names: dict[str, None] = {}
    for node in origins.scopes.free:
        origin = origins.of(node)
        if isinstance(origin, FromArguments) and origin.path:
            names[origins.tree.name(node)] = None
    return list(names)


def parameters_schema(
    origins: Origins,
    units: Sequence[Unit],
    given: Iterable[tuple[Described, Mapping[str, Argument]]],
    called: Mapping[CallSite, Described],
) -> JsonObject:
    """Build the schema of the program's arguments; `given` are the inputs of what its calls call,
    and their arguments, `called` the calls of tools.

    A parameter that has a default, or is not needed, is not required. The schema rejects nothing
    that the program can handle: contradictory types are left out, and compared values are
    `examples` unless every other value fails. What is more than inferred stands in it a second
    time, under CERTAIN.
    """
    uses = ParameterUses(origins, units)
    arguments = read_uses(uses)
    for path, values in allowed_values(uses):
        arguments.at(path, len(origins.tree.source.text)).allow(values)
    tools = SchemaHints(arguments, origins)
    for inputs, given_to in given:
        tools.add(inputs, given_to)
    certain = certain_schema(arguments, demands_of(uses, called), origins)
    found = object_schema(arguments)
    return {**found, CERTAIN: certain} if certain else found
