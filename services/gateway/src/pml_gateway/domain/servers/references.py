"""References in an `mcpServers` file, as other clients write them: `${NAME}`, `${NAME:-default}`,
`${env:NAME}`, `${input:id}`, `${workspaceFolder}`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pydantic import JsonValue

from pml_common.contracts.tool import JsonObject

_REFERENCE = re.compile(r"\$\{([^{}]*)\}")
_VARIABLE = re.compile(r"(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<default>:-.*)?", re.DOTALL)
_KIND = re.compile(r"(?P<kind>[A-Za-z][A-Za-z0-9]*):(?P<rest>.*)", re.DOTALL)


@dataclass(frozen=True)
class Surroundings:
    """Values to fill in: environment variables; `places` by the names that editors give them
    (`workspaceFolder`, …); `inputs` that the file declares, by id."""

    variables: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    places: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    inputs: Mapping[str, JsonObject] = field(default_factory=lambda: MappingProxyType({}))


def input_variable(input_id: str) -> str:
    """Return the name of the environment variable that answers `${input:id}`."""
    return f"PML_INPUT_{re.sub('[^A-Z0-9]', '_', input_id.upper())}"


def inputs_of(document: JsonObject) -> dict[str, JsonObject]:
    """Return the `inputs` that a file declares, by id."""
    declared = document.get("inputs")
    found = declared if isinstance(declared, list) else []
    return {
        str(one["id"]): one for one in found if isinstance(one, dict) and one.get("id") is not None
    }


def fill_in(value: JsonValue, where: str, around: Surroundings, faults: list[str]) -> JsonValue:
    """Return a value with its references replaced; those that cannot be are added to `faults`, by
    field."""
    if isinstance(value, dict):
        return {key: fill_in(v, f"{where}.{key}", around, faults) for key, v in value.items()}
    if isinstance(value, list):
        return [fill_in(v, f"{where}.{i}", around, faults) for i, v in enumerate(value)]
    if not isinstance(value, str):
        return value

    def replacement(found: re.Match[str]) -> str:
        try:
            known = _value_of(found[1], around)
        except LookupError as error:
            faults.append(f"{where}: {error.args[0]}")
            return ""
        return found[0] if known is None else known

    return _REFERENCE.sub(replacement, value)


def _value_of(text: str, around: Surroundings) -> str | None:
    """Return the value of a reference; None for a text that is none. Raises LookupError."""
    variable = _VARIABLE.fullmatch(text)
    if variable is not None:
        name, default = variable["name"], variable["default"]
        value = around.variables.get(name, around.places.get(name))
        if default is not None:
            return value or default.removeprefix(":-")
        if value is None:
            raise LookupError(f"${{{text}}} is not set in the environment")
        return value
    other = _KIND.fullmatch(text)
    if other is None:
        return None
    if other["kind"] != "input":
        raise LookupError(f"${{{text}}} is not supported: write the value, or ${{NAME}}")
    return _answer(other["rest"], around)


def _answer(input_id: str, around: Surroundings) -> str:
    """Return what answers an input. Raises LookupError."""
    name, declared = input_variable(input_id), around.inputs.get(input_id, {})
    value = around.variables.get(name, declared.get("default"))
    if isinstance(value, str):
        return value
    described = declared.get("description")
    asked = f" ({described})" if isinstance(described, str) else ""
    raise LookupError(
        f"${{input:{input_id}}}{asked} is not answered: nobody is asked here; set {name} in the "
        f"environment, or write the value"
    )
