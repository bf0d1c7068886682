"""Reading of tool catalogs, policies and capabilities from files."""

from collections.abc import Sequence
from typing import TypeVar

from pydantic import JsonValue, ValidationError

from pml_analysis.capability_reading import read_capability
from pml_analysis.decision.capabilities import Library
from pml_cli.arguments import read_json, read_source
from pml_cli.errors import USAGE, CommandError
from pml_common.contracts.base import Contract
from pml_common.contracts.capability import CapabilityDescription
from pml_common.contracts.decision import Policy
from pml_common.contracts.policy_file import PolicyInvalid, faults_of, parse_policies
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import ToolDefinition

C = TypeVar("C", bound=Contract)


def read_tools(file: str) -> Sequence[ToolDefinition]:
    """Read a list of tool definitions, or an object with one under `tools`. Raises CommandError."""
    return _read_list(file, "tools", "tool", ToolDefinition)


def read_library(file: str) -> Library:
    """Read a list of capabilities with code, or an object with one under `capabilities`. Raises
    CommandError."""
    described = _read_list(file, "capabilities", "capability", CapabilityDescription)
    return Library.of([read_capability(one) for one in described])


def read_policy(file: str, scope: str) -> Policy:
    """Read the policy that a policy file assigns to `org.project`. Raises CommandError."""
    org, _, project = scope.partition(".")
    try:
        return parse_policies(read_source(file)).of(Scope(org=org, project=project))
    except PolicyInvalid as invalid:
        raise CommandError(f"{file}: {invalid}", USAGE) from invalid
    except ValidationError as error:
        raise CommandError(f"--scope {scope}: expected org.project", USAGE) from error


def _read_list(file: str, key: str, noun: str, model: type[C]) -> list[C]:
    document = read_json(file)
    listed = document.get(key) if isinstance(document, dict) else document
    if not isinstance(listed, list):
        raise CommandError(f"{file}: expected a list of {key}, or an object with `{key}`", USAGE)
    return [_one(f"{file}: {noun} {position}", one, model) for position, one in enumerate(listed)]


def _one(where: str, document: JsonValue, model: type[C]) -> C:
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise CommandError(f"{where}: {faults_of(error)[0]}", USAGE) from error
