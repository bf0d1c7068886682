"""Tools as servers list them, and as PML lists them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts.tool import JsonObject, ToolAnnotations, ToolDefinition
from pml_gateway.domain.api.mcp_tools import (
    definitions_of,
    did_you_mean,
    has_structured_result,
    listing_of,
)

SCHEMA: JsonObject = {"type": "object", "properties": {"path": {"type": "string"}}}


def test_a_tool_is_defined_by_all_it_declares() -> None:
    tools, faults = definitions_of(
        "fs",
        [
            {
                "name": "write",
                "title": "Write",
                "description": "Write it.",
                "inputSchema": SCHEMA,
                "outputSchema": {"type": "object"},
                "annotations": {
                    "readOnlyHint": False,
                    "destructiveHint": True,
                    "idempotentHint": True,
                    "openWorldHint": False,
                },
                "_meta": {"x": 1},
                "icons": [{"src": "https://icons.example/a.png", "mimeType": None}],
            }
        ],
        trusted=True,
    )
    assert not faults
    assert tools == (
        ToolDefinition(
            server="fs",
            name="write",
            title="Write",
            description="Write it.",
            input_schema=SCHEMA,
            output_schema={"type": "object"},
            annotations=ToolAnnotations(
                read_only=False, destructive=True, idempotent=True, open_world=False
            ),
            meta={"x": 1},
            icons=({"src": "https://icons.example/a.png"},),
        ),
    )


def test_hints_of_an_untrusted_server_are_claims_and_do_not_count() -> None:
    listed: list[JsonObject] = [
        {"name": "a", "inputSchema": {}, "annotations": {"readOnlyHint": True}},
        {"name": "b", "inputSchema": {}, "annotations": {"title": "B"}},
    ]
    (claims, silent), _ = definitions_of("fs", listed, trusted=False)
    assert (claims.annotations, claims.claims) == (
        ToolAnnotations(),
        ToolAnnotations(read_only=True),
    )
    assert (silent.annotations, silent.claims, silent.title) == (ToolAnnotations(), None, "B")
    assert "readOnlyHint" not in str(listing_of(claims, "a"))
    trusted, _ = definitions_of("fs", listed, trusted=True)
    assert trusted[0].annotations == claims.claims
    assert trusted[0].definition_hash != claims.definition_hash


def test_undeclared_properties_are_unknown() -> None:
    (tool,), _ = definitions_of(
        "fs", [{"name": "a", "inputSchema": {}, "annotations": None}], trusted=True
    )
    assert tool.annotations == ToolAnnotations()
    assert tool.title is None
    assert tool.description == ""


def test_an_old_title_is_taken_from_the_hints() -> None:
    listed: JsonObject = {"name": "a", "inputSchema": {}, "annotations": {"title": "Old"}}
    assert definitions_of("fs", [listed], trusted=True)[0][0].title == "Old"


def test_tools_come_in_name_order_and_unusable_ones_are_explained() -> None:
    def tool(name: object, schema: object = SCHEMA) -> JsonObject:
        return {"name": name, "inputSchema": schema}  # pyright: ignore[reportReturnType]

    tools, faults = definitions_of(
        "fs", [tool("b"), tool("a"), tool("a b"), tool("x" * 300), tool("c", "no")], trusted=True
    )
    assert [each.name for each in tools] == ["a", "b"]
    assert [fault.split(":")[0] for fault in faults] == ["a b", "x" * 300, "c"]


@pytest.mark.parametrize("other", [SCHEMA, {"type": "object"}], ids=["equal", "different"])
def test_tools_that_share_a_name_are_all_left_out(other: JsonObject) -> None:
    listed: list[JsonObject] = [
        {"name": "twice", "inputSchema": SCHEMA},
        {"name": "once", "inputSchema": SCHEMA},
        {"name": "twice", "inputSchema": other},
    ]
    tools, faults = definitions_of("fs", listed, trusted=True)
    assert [tool.name for tool in tools] == ["once"]
    assert faults == ("twice: listed 2 times, so none of them is used",)


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["name", "inputSchema", "annotations", "title", "outputSchema"]),
            st.none() | st.text() | st.booleans() | st.just({"type": "object"}),
        )
    )
)
def test_every_tool_of_any_listing_is_usable_or_a_fault(listed: list[Any]) -> None:
    tools, faults = definitions_of("fs", listed, trusted=True)
    assert len(tools) + len(faults) == len({str(tool.get("name")) for tool in listed})


def test_a_tool_without_a_description_is_listed_with_one_that_says_so() -> None:
    listing = listing_of(ToolDefinition(server="fs", name="read"), "fs_read")
    assert listing["description"] == "fs:read, which its server does not describe"


def test_a_tool_is_listed_with_its_own_title_and_what_its_server_shows() -> None:
    tool = ToolDefinition(
        server="fs",
        name="read",
        description="Read.",
        input_schema=SCHEMA,
        output_schema={"type": "object"},
        annotations=ToolAnnotations(read_only=True),
    )
    assert listing_of(tool, "fs_read") == {
        "name": "fs_read",
        "title": "fs:read",
        "description": "Read.",
        "inputSchema": SCHEMA,
        "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
        "_meta": {"pml/tool": "fs:read"},
    }
    titled = tool.model_copy(update={"title": "Read a file"})
    shown: JsonObject = {"_meta": {"a.org/b": 1}, "icons": [{"src": "a.png"}], "name": "other"}
    listing = listing_of(titled, "fs_read", shown)
    assert (listing["name"], listing["title"]) == ("fs_read", "Read a file")
    assert listing["annotations"] == {"readOnlyHint": True, "title": "Read a file"}
    assert listing["_meta"] == {"a.org/b": 1, "pml/tool": "fs:read"}
    assert listing["icons"] == [{"src": "a.png"}]


@pytest.mark.parametrize(
    ("schema", "expected"), [(None, False), ({"type": "array"}, False), ({"type": "object"}, True)]
)
def test_a_schema_is_listed_where_every_client_can_use_it(
    schema: JsonObject | None, expected: bool
) -> None:
    tool = ToolDefinition(server="fs", name="read", output_schema=schema)
    assert has_structured_result(tool) is expected
    assert ("outputSchema" in listing_of(tool, "x")) is expected


def test_header_hints_are_not_listed() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {"key": {"type": "string", "x-mcp-header": "Key"}},
        "anyOf": [{"x-mcp-header": "A", "required": ["key"]}],
    }
    tool = ToolDefinition(server="s", name="t", input_schema=schema)
    assert listing_of(tool, "s_t")["inputSchema"] == {
        "type": "object",
        "properties": {"key": {"type": "string"}},
        "anyOf": [{"required": ["key"]}],
    }


def test_similar_names_are_suggested() -> None:
    assert did_you_mean("fs:raed", ["fs:read", "git:log"]) == "; did you mean fs:read?"
    assert did_you_mean("x", ["fs:read"]) == ""
