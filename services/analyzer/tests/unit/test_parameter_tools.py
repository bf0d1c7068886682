"""Constraints on parameters by the tools that they go to."""

import pytest
from pydantic import JsonValue

from pml_analysis.analysis import Analysis, analyze
from pml_common.contracts.decision import Policy
from pml_common.contracts.tool import JsonObject, ToolDefinition
from services.analyzer.tests.support.parameters import NUMBER, TEXT, Cases, check, fields, listed
from services.analyzer.tests.support.programs import TOOLS

TOOLS_SAY: Cases = {
    "inside of arguments": (
        "await mcp.http.post({ url: args.url, body: args.b ?? '', headers: { ...args.h } });",
        {"url": TEXT, "b": {**TEXT, "default": ""}, "h": {"type": "object"}},
        ["url", "h"],
    ),
    "tools that disagree": (
        "await mcp.fs.read({ path: p }); await mcp.fs.read({ limit: p, q: p });",
        {"p": {}},
        ["p"],
    ),
    "a tool and a use that disagree": (
        "await mcp.fs.read({ path: p }); return p * 2;",
        {"p": {}},
        ["p"],
    ),
    "all arguments": (
        "return await mcp.fs.read(args);",
        {"path": TEXT, "limit": NUMBER},
        ["path"],
    ),
    "all but some": (
        "const path = 'a'; return await mcp.fs.read({ ...args, path });",
        {"limit": NUMBER},
        [],
    ),
    "a name that is not always the arguments": (
        "const f = (params) => mcp.fs.read(params); params.a; return f({ path: '' });",
        {"a": {}},
        ["a"],
    ),
    "all fields of one": (
        "return await mcp.fs.read(args.options);",
        {"options": fields("path", path=TEXT, limit=NUMBER)},
        ["options"],
    ),
    "some fields of one": (
        "return await mcp.fs.read({ ...args.options, path: 'a' });",
        {"options": {"type": "object"}},
        ["options"],
    ),
    "one by two names for it": (
        "return [args.a.b, args['a.b'], await mcp.fs.read({ path: args.a.b })];",
        {"a": fields("b"), "a.b": {}},
        ["a", "a.b"],
    ),
}


@pytest.mark.parametrize(("code", "properties", "required"), TOOLS_SAY.values(), ids=TOOLS_SAY)
def test_parameters_are_told_by_tools(
    code: str, properties: JsonObject, required: list[str]
) -> None:
    check(code, properties, required)


def said_by(field: JsonObject, code: str, **document: JsonValue) -> JsonObject:
    """Return the schema of `args.m` in a program, with a tool `a:take` whose field `x` is this."""
    properties: JsonObject = {"x": field, "y": {"type": "string"}}
    taking = ToolDefinition(
        server="a",
        name="take",
        input_schema={"properties": properties, "required": ["x"], **document},
    )
    outcome = analyze(code, tools=(*TOOLS, taking), policy=Policy())
    assert isinstance(outcome, Analysis), outcome
    found = outcome.parameters_schema["properties"]
    assert isinstance(found, dict)
    assert isinstance(found["m"], dict)
    return found["m"]


TAKEN = "await mcp.a.take({ x: args.m });"


def test_what_a_tool_says_of_its_field_holds_for_the_parameter() -> None:
    field: JsonObject = {
        "type": "string",
        "title": "X",
        "default": "b",
        "description": "Which one",
        "enum": ["a", "b"],
        "format": "uri",
        "minLength": 1,
    }
    kept = {key: field[key] for key in ("type", "description", "enum", "format", "minLength")}
    assert said_by(field, TAKEN) == kept
    assert said_by(field, TAKEN + "if (args.m === 'a') {}") == kept


def test_values_that_the_program_handles_are_not_refused_because_a_tool_would() -> None:
    field: JsonObject = {"type": "string", "enum": ["a", "b"]}
    assert said_by(field, f"if (args.m !== 'skip') {TAKEN}") == {**TEXT, "examples": ["skip"]}
    assert said_by(field, "await mcp.a.take({ x: args.m ?? 'c' });") == {**TEXT, "default": "c"}


def test_of_two_tools_what_they_agree_on_is_kept() -> None:
    field: JsonObject = {"type": "string", "description": "X", "minLength": 3}
    assert said_by(field, TAKEN + "await mcp.a.take({ y: args.m });") == {
        "type": "string",
        "description": "X",
    }
    assert said_by(
        {"type": "number", "description": "X"}, TAKEN + "mcp.a.take({ y: args.m });"
    ) == {"description": "X"}


def test_a_type_that_uses_deny_leaves_the_description_only() -> None:
    field: JsonObject = {"type": "string", "description": "X", "format": "uri"}
    assert said_by(field, TAKEN + "args.m * 2;") == {"description": "X"}


def test_what_a_tool_leaves_open_is_told_by_uses() -> None:
    assert said_by({"description": "X"}, TAKEN + "args.m.id;") == {
        **fields("id"),
        "description": "X",
    }
    assert said_by({"type": "object"}, TAKEN + "args.m.id;") == fields("id")
    known: JsonObject = {"type": "array", "items": {"type": "string"}}
    assert said_by(known, TAKEN + "args.m[0].id;") == known


def test_references_that_lead_out_of_a_schema_are_not_taken_along() -> None:
    document: dict[str, JsonValue] = {"$defs": {"X": {"type": "string", "enum": ["a"]}}}
    direct: JsonObject = {"$ref": "#/$defs/X"}
    assert said_by(direct, TAKEN, **document) == {"type": "string", "enum": ["a"]}
    inside: JsonObject = {"type": "array", "items": direct, "description": "X"}
    assert said_by(inside, TAKEN, **document) == {"type": "array", "description": "X"}
    several: JsonObject = {"anyOf": [direct, {"type": "number"}]}
    assert said_by(several, TAKEN, **document) == {}


def test_elements_are_told_by_the_tools_that_they_go_to() -> None:
    field: JsonObject = {"type": "array", "items": {"type": "string", "format": "uri"}}
    uri: JsonObject = {"type": "string", "format": "uri"}
    assert said_by(field, "await mcp.a.take({ x: [args.m, 'b', f()] }); function f() {}") == uri
    one = "for (const m of args.m) await mcp.a.take({ x: [m] });"
    assert said_by(field, one) == listed(uri)
