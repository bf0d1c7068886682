"""Pipelines of capabilities: programs that pass the result of each to the next."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from pml_common.contracts.tool import JsonObject
from pml_common.provides.coverage import compute_coverage
from pml_common.provides.fields import WHOLE
from pml_common.provides.json_schema import Described, described

_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_DEEPEST: Final = 3
_MOST_SHOWN: Final = 12


@dataclass(frozen=True)
class Step:
    """A capability of a pipeline: `reference` is the one by which the program calls it, `takes` the
    schema of its parameters, `gives` that of its result, empty where it is not known."""

    reference: str
    takes: JsonObject
    gives: JsonObject


@dataclass(frozen=True)
class Pipeline:
    """The program, and what could not be checked."""

    code: str
    notices: tuple[str, ...]


class Misfit(ValueError):
    """Capabilities do not fit one after the other; says which property, what is given and what is
    wanted."""


def pipeline(steps: Sequence[Step]) -> Pipeline:
    """Build the program that calls the steps in order. The parameters of the first are its own; of
    each other every property is the one of the result before that it is named after, or else the
    one that `compute_coverage` finds for it. Raises Misfit with everything that does not fit."""
    lines = [_call(1, steps[0], _own(described(steps[0].takes)))]
    notices: list[str] = []
    faults: list[str] = []
    for number, (before, step) in enumerate(pairwise(steps), 2):
        try:
            given, notice = _link(number, before, step)
        except Misfit as misfit:
            faults.append(str(misfit))
            continue
        lines.append(_call(number, step, given))
        notices += [] if notice is None else [notice]
    if faults:
        raise Misfit("; ".join(faults))
    lines.append(f"return step{len(steps)};")
    return Pipeline("\n".join(lines), tuple(notices))


def _own(takes: Described) -> str:
    return _object({name: f"args{_key(name)}" for name in takes.properties})


def _call(number: int, step: Step, argument: str) -> str:
    return f"const step{number} = await mcp.call({json.dumps(step.reference)}, {argument});"


def _link(number: int, before: Step, step: Step) -> tuple[str, str | None]:
    """Return the argument of a step, and what is not known of it. Raises Misfit."""
    gives, takes, source = described(before.gives), described(step.takes), f"step{number - 1}"
    given, taker = before.reference, step.reference
    if before.gives.get("type") == "null":
        raise Misfit(f"{given} returns nothing: {taker} has nothing to begin with")
    if not takes.properties:
        raise Misfit(f"{taker} takes no parameters: the result of {given} would not reach it")
    if gives.types <= {"object"} and not gives.properties:
        notice = f"the result of {given} is not known: whether {taker} takes it shows when it runs"
        return source, notice
    fed = _fed(before, step, gives, takes)
    faults = list(_faults(before, step, gives, takes, fed))
    if not faults and not fed:
        faults = [f"{taker} takes {_fields(takes)}, nothing of {_told(given, gives)}"]
    if faults:
        raise Misfit("; ".join(faults))
    return _object({name: f"{source}{path}" for name, path in fed.items()}), None


def _fed(before: Step, step: Step, gives: Described, takes: Described) -> Mapping[str, str]:
    """Return the part of a result that each property gets, as an access to it."""
    fields = set(gives.properties)
    found = {name: _key(name) for name in takes.properties if name in fields}
    if "object" not in gives.types:
        wanted = [*takes.required] or [*takes.properties]
        if len(wanted) == 1:
            return {wanted[0]: ""}
    for mapped in compute_coverage(before.gives, step.takes).field_mapping:
        steps = [] if mapped.from_field == WHOLE else mapped.from_field.split(".")
        if mapped.type_compatible and mapped.to_field not in found and _leads(gives, steps):
            found[mapped.to_field] = "".join(map(_key, steps))
    return {name: found[name] for name in takes.properties if name in found}


def _leads(value: Described, steps: Sequence[str]) -> bool:
    """Whether these are names of properties, one inside the other: not elements of lists."""
    for step in steps:
        if step not in value.properties:
            return False
        value = value.properties[step]
    return True


def _faults(
    before: Step, step: Step, gives: Described, takes: Described, fed: Mapping[str, str]
) -> Iterator[str]:
    for name, wanted in takes.properties.items():
        if name not in fed and name in takes.required:
            yield (
                f"{step.reference} needs {_field(name, wanted)}, which is no part of "
                f"{_told(before.reference, gives)}"
            )
        elif name in fed:
            part = gives.properties.get(name, gives) if fed[name] in ("", _key(name)) else None
            for at, is_given, is_wanted in _differences(part, wanted, name):
                yield (
                    f"{step.reference} takes {at} as {is_wanted}, and {before.reference} gives "
                    f"{is_given}"
                )


def _differences(
    given: Described | None, wanted: Described, at: str, depth: int = 0
) -> Iterator[tuple[str, str, str]]:
    """Return the parts that do not fit: where, what is given, and what is wanted."""
    if given is None or depth > _DEEPEST:
        return
    if not given.meets(wanted):
        yield at, _types(given), _types(wanted)
        return
    for name, inner in wanted.properties.items():
        has = given.properties.get(name)
        if has is not None:
            yield from _differences(has, inner, f"{at}.{name}", depth + 1)
        elif given.properties and name in wanted.required:
            yield f"{at}.{name}", f"{at} without it", _types(inner)
    if "array" in wanted.types and "array" in given.types:
        yield from _differences(given.items, wanted.items, f"{at}[]", depth + 1)


def _told(reference: str, gives: Described) -> str:
    """Describe a result: that of which capability, and what it is."""
    if gives.properties:
        return f"the result of {reference}, which has {_fields(gives)}"
    return f"the result of {reference}, which is {_types(gives)}"


def _fields(value: Described) -> str:
    shown = [_field(name, inner) for name, inner in value.properties.items()]
    more = f" and {len(shown) - _MOST_SHOWN} more" if len(shown) > _MOST_SHOWN else ""
    return ", ".join(shown[:_MOST_SHOWN]) + more


def _field(name: str, value: Described) -> str:
    return f"{name} ({_types(value)})"


def _types(value: Described) -> str:
    return " or ".join(sorted(value.types)) or "any value"


def _object(fields: Mapping[str, str]) -> str:
    inside = ", ".join(f"{_name(name)}: {value}" for name, value in fields.items())
    return f"{{ {inside} }}" if inside else "{}"


def _name(name: str) -> str:
    return name if _IDENTIFIER.fullmatch(name) else json.dumps(name)


def _key(name: str) -> str:
    return f".{name}" if _IDENTIFIER.fullmatch(name) else f"[{json.dumps(name)}]"
