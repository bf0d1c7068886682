"""Lines of programs that call a tool or a capability, with placeholders for required arguments."""

import json
from typing import Final

from pydantic import JsonValue

from pml_analysis.typing.declarations import called_by
from pml_analysis.typing.type_text import key
from pml_common.contracts.tool import JsonObject, ToolDefinition

_EMPTY: Final[dict[str, str]] = {
    "array": "[]",
    "boolean": "true",
    "integer": "0",
    "null": "null",
    "number": "0",
    "object": "{}",
}
_DEEPEST: Final = 3


def tool_call_line(tool: ToolDefinition) -> str:
    """Return a line that calls a tool: `const result = await mcp.fs.read({ path: "<path>" });`."""
    return _line(called_by(tool), tool.input_schema)


def capability_call_line(name: str, parameters_schema: JsonObject) -> str:
    """Return a line that calls a capability by the name that programs call it by:
    `const result = await capabilities.fs_read_json({ path: "<path>" });`."""
    it = ToolDefinition(server="capabilities", name=name)
    return _line(called_by(it).removeprefix("mcp."), parameters_schema)


def _line(opening: str, schema: JsonObject) -> str:
    fields = _fields(schema, 0)
    called = f"{opening}{fields}" if fields != "{}" else opening.removesuffix(", ")
    return f"const result = await {called});"


def _fields(schema: JsonObject, depth: int) -> str:
    """Return an object literal with the required fields of an object."""
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    names = [each for each in _list(schema.get("required")) if isinstance(each, str)]
    given = ", ".join(f"{key(name)}: {_value(name, known.get(name), depth)}" for name in names)
    return f"{{ {given} }}" if given else "{}"


def _value(name: str, schema: JsonValue, depth: int) -> str:
    known = schema if isinstance(schema, dict) else {}
    choices = [known["const"]] if "const" in known else _list(known.get("enum"))
    if choices:
        return json.dumps(choices[0], ensure_ascii=False)
    kind = known.get("type")
    if kind == "object" and depth < _DEEPEST:
        return _fields(known, depth + 1)
    return _EMPTY.get(str(kind)) or json.dumps(f"<{name}>", ensure_ascii=False)


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []
