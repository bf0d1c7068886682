"""The declarations of tools, capabilities and the sandbox."""

import re

from pml_analysis.names.globals import FORBIDDEN, GLOBALS
from pml_analysis.typing.declarations import (
    DECLARED,
    as_module,
    capability_signature,
    declarations,
    tool_signature,
)
from pml_analysis.typing.sandbox_types import SANDBOX_NAMES
from pml_common.contracts.tool import JsonObject, ToolDefinition
from services.analyzer.tests.support.programs import schema, tool
from services.analyzer.tests.support.schemas import hostile_tools


def declared(*tools: ToolDefinition) -> str:
    """Return everything but the head and the sandbox's globals."""
    return declarations(tools).partition("  toString(): string;\n}\n\n")[2]


def test_a_tool_is_a_member_of_its_server_and_has_a_name() -> None:
    text = declared(tool("fs:read", "path", gives=schema("content"), description="Reads a file."))
    assert text.startswith("""\
/** The tools of the connected servers. */
interface PmlServers {
  readonly fs: {
    /** Reads a file. */
    readonly read: (args: { path: string }) => Promise<{ content: string }>;
  };
}
""")
    assert '\n  "fs:read": PmlServers["fs"]["read"];\n' in text


def test_names_that_are_no_identifiers_are_quoted() -> None:
    text = declared(tool("my server:a-b"))
    assert '  readonly "my server": {\n' not in text  # short enough for one line
    assert '  readonly "my server": { readonly "a-b": (args?: ' in text
    assert '  "my server:a-b": PmlServers["my server"]["a-b"];\n' in text


def test_without_an_output_schema_the_result_is_anything() -> None:
    assert "=> Promise<any> };" in declared(tool("fs:read", "path"))


def test_a_learned_output_is_open_and_stands_back_for_the_schema_of_the_server() -> None:
    learned = {**schema("size"), "additionalProperties": True}
    seen = tool("fs:read", "path").model_copy(update={"learned_output": learned})
    assert "=> Promise<{ size: string; [key: string]: any }>" in declared(seen)
    assert "Learned: its results so far had this type" in declared(seen)
    typed = seen.model_copy(update={"output_schema": schema("content")})
    assert "=> Promise<{ content: string }>" in declared(typed)
    assert "Learned" not in declared(typed)


def test_the_title_stands_in_for_a_description() -> None:
    assert "/** Read */" in declared(ToolDefinition(server="fs", name="read", title="Read"))


def test_of_two_tools_of_one_name_the_last_counts() -> None:
    text = declared(tool("fs:read", "old"), tool("fs:read", "new"))
    assert "(args: { new: string })" in text
    assert "old" not in text


def test_tools_of_a_server_called_call_are_called_by_name() -> None:
    text = declared(tool("call:me", "number"))
    assert "readonly call: {" not in text
    assert '  "call:me": (args: { number: string }) => Promise<any>;\n' in text


def test_definitions_of_tools_do_not_meet() -> None:
    schemas: list[JsonObject] = [
        {"$defs": {"X": {"type": kind}}, "properties": {"a": {"$ref": "#/$defs/X"}}}
        for kind in ("string", "number", "boolean")
    ]
    text = declared(
        ToolDefinition(server="a", name="b", input_schema=schemas[0], output_schema=schemas[1]),
        ToolDefinition(server="A", name="B", input_schema=schemas[2]),
    )
    types = dict(re.findall(r"^type (\w+) = (\w+);$", text, re.MULTILINE))
    assert sorted(types.values()) == ["boolean", "number", "string"]
    assert {"PmlAB_X", "PmlABResult_X", "PmlAB_X2"} == set(types)


def test_arguments_may_be_left_out_where_nothing_is_required() -> None:
    def mark(schema: JsonObject) -> str:
        text = declared(ToolDefinition(server="a", name="b", input_schema=schema))
        found = re.search(r"\(args(\??):", text)
        assert found is not None
        return found[1]

    needs: JsonObject = {"required": ["a"]}
    assert mark({"properties": {"a": {}}}) == "?"
    assert mark(needs) == ""
    assert mark({"allOf": [{}, needs]}) == ""
    assert mark({"anyOf": [{}, needs]}) == "?"
    assert mark({"anyOf": [needs, needs]}) == ""
    assert mark({"oneOf": [needs, True]}) == "?"
    assert mark({"oneOf": "odd"}) == "?"


def test_what_a_tool_takes_is_at_least_an_object() -> None:
    text = declared(ToolDefinition(server="a", name="b", input_schema={}))
    assert "(args?: { [key: string]: any }) => Promise<any>" in text


def test_a_capability_is_called_as_a_member_or_by_name() -> None:
    reads = tool("cap:fs:read_json", "path", description="Reads JSON.")
    text = declarations([], {"fs_read_json": reads, "fs:read_json": reads, "1a": tool("cap:1a")})
    assert (
        """\
interface PmlCapabilities {
  /** Reads JSON. */
  readonly fs_read_json: (args: { path: string }) => Promise<any>;
  readonly [name: string]: (args?: any) => Promise<any>;
}
"""
        in text
    )
    assert '  "cap:fs:read_json": (args: { path: string }) => Promise<any>;\n' in text


def test_every_global_of_the_sandbox_is_declared_or_part_of_the_language() -> None:
    assert set(SANDBOX_NAMES) - {"args", "context"} == GLOBALS - set(_LANGUAGE.split())
    assert not set(DECLARED) & set(FORBIDDEN)


_LANGUAGE = """
AggregateError Array ArrayBuffer AsyncDisposableStack BigInt BigInt64Array BigUint64Array Boolean
DataView Date DisposableStack Error EvalError Float16Array Float32Array Float64Array Infinity
Int16Array Int32Array Int8Array Intl Iterator JSON Map Math NaN Number Object Promise Proxy
RangeError ReferenceError Reflect RegExp Set String SuppressedError Symbol SyntaxError TypeError
URIError Uint16Array Uint32Array Uint8Array Uint8ClampedArray WeakMap WeakSet arguments decodeURI
decodeURIComponent encodeURI encodeURIComponent escape isFinite isNaN parseFloat parseInt undefined
unescape
"""


def test_a_module_exports_what_is_declared() -> None:
    text = as_module(declarations([]))
    exported = re.search(r"^export \{ (.*) \};$", text, re.MULTILINE)
    assert exported is not None
    values = re.findall(r"^declare (?:const|function|class) (\w+)", text, re.MULTILINE)
    assert sorted(exported[1].split(", ")) == sorted(values)


def test_nothing_of_others_becomes_a_declaration() -> None:
    text = declarations(hostile_tools())
    heads = re.findall(r"^(?:declare )?(?:const|function|class|interface|type) (\w+)", text, re.M)
    assert len(heads) == len(set(heads))
    assert {name for name in heads if not name.startswith("Pml")} == set(DECLARED)
    assert "\ud800" not in text


def test_a_signature_shows_how_a_program_calls_a_tool() -> None:
    read = tool("fs:read", "path", gives=schema("content"))
    assert (
        tool_signature(read) == "mcp.fs.read(args: { path: string }): Promise<{ content: string }>"
    )
    odd = tool("my server:a-b", "path")
    assert tool_signature(odd) == 'mcp["my server"]["a-b"](args: { path: string }): Promise<any>'
    by_name = tool("call:me", "path")
    assert tool_signature(by_name) == 'mcp.call("call:me", args: { path: string }): Promise<any>'


def test_a_signature_begins_with_the_types_that_it_refers_to() -> None:
    node: JsonObject = {
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
        "type": "object",
        "properties": {"node": {"$ref": "#/$defs/Node"}},
    }
    shown = tool_signature(ToolDefinition(server="fs", name="walk", input_schema=node))
    assert shown == (
        "type PmlFsWalk_Node = { next?: PmlFsWalk_Node };\n"
        "mcp.fs.walk(args?: { node?: PmlFsWalk_Node }): Promise<any>"
    )


def test_a_signature_shows_how_a_program_calls_a_capability() -> None:
    assert capability_signature("fs_copy", schema("path")) == (
        "capabilities.fs_copy(args: { path: string }): Promise<any>"
    )


def test_tools_that_are_no_members_are_called_by_their_ids() -> None:
    text = declarations([tool("odd:then", "path"), tool("odd:constructor"), tool("odd:fine")])
    servers = text[text.index("interface PmlServers") : text.index("interface PmlCapabilities")]
    assert "then" not in servers
    assert "constructor" not in servers
    assert "readonly fine:" in servers
    assert '  "odd:then": (args: { path: string }) => Promise<any>;\n' in text
    signature = tool_signature(tool("odd:then", "path"))
    assert signature == 'mcp.call("odd:then", args: { path: string }): Promise<any>'
