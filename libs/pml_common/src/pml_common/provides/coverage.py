"""Coverage of one tool's input by another's result, field by field."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from pml_common.contracts.structure import Coverage, FieldMapping
from pml_common.contracts.tool import JsonObject
from pml_common.provides.fields import Inputs, Output, Outputs
from pml_common.provides.json_schema import Described
from pml_common.provides.names import formats_agree, normalised, takes_payload


@dataclass(frozen=True)
class Provision:
    """The coverage of a consumer's input by a provider's result; `coverage` None: nothing."""

    coverage: Coverage | None
    provider_output_schema: JsonObject
    consumer_input_schema: JsonObject
    field_mapping: tuple[FieldMapping, ...]


def compute_coverage(provider_outputs: JsonObject, consumer_inputs: JsonObject) -> Provision:
    """Compute the coverage of an input of one schema by a result of another.

    strict: all required fields; partial: some of them; optional: only optional fields.
    An input field takes the first output field by:

    1. the same name;
    2. the same name but for case, separators and a plural's s: `file_name`, `fileName`. A list's
       elements feed the singular, one call each, and a field of every element of a list feeds a
       list of it: `urls[]` → `url`, `results[].url` → `urls`;
    3. both are payloads by name: the content of a result (`content`, `result`, `json`, or `$`, a
       whole result without fields) feeds an input for any content (`body`, `data`, `json`), unless
       types, required fields or formats rule it out.

    A field of the right type precedes one of a wrong type; the latter appears in the mapping if its
    name is the same, and covers nothing. Fields that control a call (`limit`) take none.
    """
    return provision(Outputs(provider_outputs), Inputs(consumer_inputs))


def provision(outputs: Outputs, inputs: Inputs) -> Provision:
    """Compute the coverage for schemas whose fields are indexed."""
    mapping = tuple(_mapping(outputs, inputs))
    fed = {field.to_field for field in mapping if field.type_compatible}
    coverage = coverage_of(fed, inputs.required)
    return Provision(coverage, outputs.schema, inputs.schema, mapping)


def coverage_of(fed: AbstractSet[str], required: AbstractSet[str]) -> Coverage | None:
    """Return the coverage, given the fed fields and the required fields of an input."""
    if required and required <= fed:
        return "strict"
    if required & fed:
        return "partial"
    return "optional" if fed else None


def _mapping(outputs: Outputs, inputs: Inputs) -> Iterator[FieldMapping]:
    for name, wanted in inputs.fields.items():
        found = _source(outputs, name, wanted)
        if found is not None:
            source, compatible = found
            yield FieldMapping(from_field=source.path, to_field=name, type_compatible=compatible)


def _source(outputs: Outputs, name: str, wanted: Described) -> tuple[Output, bool] | None:
    """Return the output field that an input field takes, and whether its type is right."""
    alike = outputs.by_name.get(normalised(name), [])
    alike = sorted(alike, key=lambda field: field.name != name)  # the same name first
    for field in alike:
        if _feeds(field, wanted):
            return field, True
    for field in outputs.payloads if takes_payload(name) else ():
        if formats_agree(field.name, name) and field.value.fits(wanted):
            return field, True
    return next(((field, False) for field in alike if field.name == name), None)


def _feeds(field: Output, wanted: Described) -> bool:
    return field.value.meets(wanted) or (
        field.of_many and "array" in wanted.types and field.value.meets(wanted.items)
    )
