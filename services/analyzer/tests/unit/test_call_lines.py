"""Lines that call tools and capabilities, as hits of discovery show them."""

import pytest

from pml_analysis.analysis import Analysis, analyze
from pml_analysis.typing.call_lines import capability_call_line, tool_call_line
from pml_analysis.typing.declarations import result_type
from pml_common.contracts.decision import Policy
from pml_common.contracts.tool import JsonObject, ToolDefinition

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "count": {"type": "integer"},
        "rows": {"type": "array"},
        "mode": {"enum": ["fast", "slow"]},
        "kind": {"const": 3},
        "where": {"type": "object", "properties": {"x-y": {}}, "required": ["x-y"]},
        "other": {"type": "string"},
    },
    "required": ["path", "count", "rows", "mode", "kind", "where", "unknown", 5],
}
GIVEN = (
    '{ path: "<path>", count: 0, rows: [], mode: "fast", kind: 3, where: { "x-y": "<x-y>" }, '
    'unknown: "<unknown>" }'
)


@pytest.mark.parametrize(
    ("server", "name", "schema", "line"),
    [
        ("fs", "read", SCHEMA, f"mcp.fs.read({GIVEN})"),
        ("fs", "read-file", {}, 'mcp.fs["read-file"]()'),
        ("fs", "then", {}, 'mcp.call("fs:then")'),
        ("fs", "then", {"required": ["a"]}, 'mcp.call("fs:then", { a: "<a>" })'),
        ("fs", "all", {"required": "a"}, "mcp.fs.all()"),
    ],
)
def test_a_line_calls_a_tool_with_what_it_requires(
    server: str, name: str, schema: JsonObject, line: str
) -> None:
    tool = ToolDefinition(server=server, name=name, input_schema=schema)
    assert tool_call_line(tool) == f"const result = await {line};"
    program = f"{tool_call_line(tool)} return result;"
    assert isinstance(analyze(program, tools=(tool,), policy=Policy()), Analysis)


def test_a_line_calls_a_capability() -> None:
    line = capability_call_line("fs_read_json", {"required": ["path"]})
    assert line == 'const result = await capabilities.fs_read_json({ path: "<path>" });'


def test_nesting_is_bounded() -> None:
    schema: JsonObject = {"type": "object", "required": ["a"]}
    for _ in range(9):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    line = capability_call_line("deep", schema)
    assert line.count("a:") == 4


def test_the_type_of_a_result_is_known_from_its_schema() -> None:
    gives: JsonObject = {"type": "object", "properties": {"size": {"type": "number"}}}
    sized = ToolDefinition(server="fs", name="stat", output_schema={**gives, "required": ["size"]})
    assert "size: number" in result_type(sized)
    assert result_type(ToolDefinition(server="fs", name="stat")) == "any"
