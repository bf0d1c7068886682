"""Catalogues and policies in files."""

from collections.abc import Sequence

from pydantic import JsonValue, ValidationError

from pml_cli.arguments import read_json
from pml_cli.errors import USAGE, CommandError
from pml_common.contracts.decision import Policy
from pml_common.contracts.tool import ToolDefinition


def read_tools(file: str) -> Sequence[ToolDefinition]:
    """A list of tool definitions, or an object with one under `tools`. Raises CommandError."""
    document = read_json(file)
    listed = document.get("tools") if isinstance(document, dict) else document
    if not isinstance(listed, list):
        raise CommandError(f"{file}: expected a list of tools, or an object with `tools`", USAGE)
    return [_tool(file, position, one) for position, one in enumerate(listed)]


def _tool(file: str, position: int, document: JsonValue) -> ToolDefinition:
    try:
        return ToolDefinition.model_validate(document)
    except ValidationError as error:
        raise CommandError(f"{file}: tool {position}: {_first(error)}", USAGE) from error


def read_policy(file: str) -> Policy:
    """A scope's rules. Raises CommandError."""
    try:
        return Policy.model_validate(read_json(file))
    except ValidationError as error:
        raise CommandError(f"{file}: {_first(error)}", USAGE) from error


def _first(error: ValidationError) -> str:
    fault = error.errors()[0]
    place = ".".join(str(part) for part in fault["loc"])
    return f"{place}: {fault['msg']}" if place else fault["msg"]
