"""Schemas of what programs return."""

import pytest

from pml_analysis.result_schemas import result_schema
from pml_common.contracts.tool import JsonObject, ToolDefinition

PAGE: JsonObject = {
    "type": "object",
    "properties": {"content": {"type": "string"}, "links": {"type": "array"}},
    "required": ["content"],
}
TOOLS = [
    ToolDefinition(server="fs", name="read", output_schema=PAGE),
    ToolDefinition(server="fs", name="stat", learned_output={"type": "number"}),
    ToolDefinition(server="fs", name="list"),
]
PARAMETERS: JsonObject = {"type": "object", "properties": {"path": {"type": "string"}}}
TEXT: JsonObject = {"type": "string"}
NULL: JsonObject = {"type": "null"}
NUMBER: JsonObject = {"type": "number"}


def returned(code: str) -> JsonObject:
    return result_schema(code, tools=TOOLS, parameters=PARAMETERS)


@pytest.mark.parametrize(
    ("code", "schema"),
    [
        ("await mcp.fs.read({});", NULL),
        ("if (args.path) return;\nawait mcp.fs.list({});", NULL),
        ("return await mcp.fs.read({});", PAGE),
        ("return (await mcp.fs.read({})).content;", TEXT),
        ("const { content } = await mcp.fs.read({}); return content;", TEXT),
        ('const page = await mcp.call("fs:read", {}); return page.links;', {"type": "array"}),
        ("return mcp.fs.stat({});", NUMBER),
        ("return await mcp.fs.list({});", {}),
        ("return await mcp.fs.gone({});", {}),
        ("return JSON.parse((await mcp.fs.read({})).content);", {}),
        ("return args.path;", TEXT),
        ("return args.other;", {}),
        ('return "a";', TEXT),
        ("return `a${args.path}`;", TEXT),
        ("return !args.path;", {"type": "boolean"}),
        ("return args.a === 1;", {"type": "boolean"}),
        ("return args.a * 2;", NUMBER),
        ("return args.a + 2;", {}),
        ("return -args.a;", NUMBER),
        ("const f = () => { return 1; }; return f;", {}),
        ("const page = await mcp.fs.read({}); page.total = 3; return page;", {}),
        ("let other = {}; other.a = 1; return await mcp.fs.stat({});", NUMBER),
        ("return ((", {}),
        ("return [];", {"type": "array"}),
        ("return [1, 'a', 2];", {"type": "array", "items": {"anyOf": [NUMBER, TEXT]}}),
        ("return [1, await mcp.fs.list({})];", {"type": "array", "items": {}}),
        ("return args.a ? 1 : null;", {"anyOf": [NULL, NUMBER]}),
        ("if (args.a) { return 1; } return 2;", NUMBER),
        ("if (args.a) { return 'a'; } else { return 2; }", {"anyOf": [TEXT, NUMBER]}),
    ],
)
def test_what_a_program_returns_is_read_from_it_and_from_what_it_calls(
    code: str, schema: JsonObject
) -> None:
    assert returned(code) == schema


def test_an_object_has_the_fields_that_it_is_written_with() -> None:
    code = "const page = await mcp.fs.read({}); return { page, size: 3, deep: { a: 1 } };"
    assert returned(code) == {
        "type": "object",
        "properties": {
            "page": PAGE,
            "size": NUMBER,
            "deep": {"type": "object", "properties": {"a": NUMBER}, "required": ["a"]},
        },
        "required": ["page", "size", "deep"],
    }
    named = "const found = { a: 1 }; return found;"
    assert returned(named) == {"type": "object", "properties": {"a": NUMBER}, "required": ["a"]}
    changed = "const found = { a: 1 }; found.b = 2; return found;"
    assert returned(changed) == {}
    assert returned("return { a: 1, ...args };") == {"type": "object"}


def test_very_deep_values_may_be_anything() -> None:
    found = returned(f"return {'[' * 20}1{']' * 20};")
    depth = 0
    while found:
        items = found.get("items", {})
        assert isinstance(items, dict)
        found, depth = items, depth + 1
    assert depth == 13
