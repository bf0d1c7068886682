"""How much of one tool's input another's result covers, field by field (A7)."""

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
    """What a provider's result covers of a consumer's input; `coverage` None: nothing."""

    coverage: Coverage | None
    provider_output_schema: JsonObject
    consumer_input_schema: JsonObject
    field_mapping: tuple[FieldMapping, ...]


def compute_coverage(provider_outputs: JsonObject, consumer_inputs: JsonObject) -> Provision:
    """What a result of one schema covers of an input of another.

    strict: all that is required; partial: some of it; optional: only what need not be given.
    An input field takes the output field that comes first by:

    1. the same name;
    2. the same name but for case, separators and a plural's s: `file_name`, `fileName`. A list's
       elements feed the singular, one call each, and what is in every element of a list feeds a
       list of it: `urls[]` → `url`, `results[].url` → `urls`;
    3. both are payloads by name: whatever a result holds (`content`, `result`, `json`, or `$`,
       the whole of a result without fields) feeds what takes anything (`body`, `data`, `json`),
       unless types, demanded fields or formats say that it cannot.

    A field whose type is right goes before one whose type is not; the latter is told in the
    mapping if its name is the same, and covers nothing. What steers a call (`limit`) takes none.
    """
    return provision(Outputs(provider_outputs), Inputs(consumer_inputs))


def provision(outputs: Outputs, inputs: Inputs) -> Provision:
    """`compute_coverage` of schemas whose fields are known."""
    mapping = tuple(_mapping(outputs, inputs))
    fed = {field.to_field for field in mapping if field.type_compatible}
    coverage = coverage_of(fed, inputs.required)
    return Provision(coverage, outputs.schema, inputs.schema, mapping)


def coverage_of(fed: AbstractSet[str], required: AbstractSet[str]) -> Coverage | None:
    """How much the fields of an input that are fed cover of those that are required."""
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
    """The output field that an input field takes, and whether its type is right."""
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
