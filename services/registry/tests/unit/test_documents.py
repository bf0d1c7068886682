"""Search documents."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_registry.domain.documents import (
    MAX_CHARACTERS,
    capability_document,
    capability_terms,
    tool_document,
    tool_summary,
    tool_terms,
)


def test_a_tool_is_found_by_its_name_title_and_description() -> None:
    tool = ToolDefinition(
        server="fs", name="read_file", title="Read file", description="Returns the content. "
    )
    assert tool_document(tool) == "fs: read file. Read file. Returns the content."


def test_a_tool_without_words_is_found_by_its_name() -> None:
    assert tool_document(ToolDefinition(server="fs", name="stat")) == "fs: stat"


def test_a_capability_is_found_by_its_name_purpose_and_tools() -> None:
    document = capability_document("fs:ensure", "make sure a file exists", ("fs:stat", "fs:read"))
    assert document == "fs ensure. make sure a file exists. Uses fs stat, fs read"
    assert capability_document("fs:ensure", "", ()) == "fs ensure"


def test_of_a_long_description_the_first_sentence_is_embedded() -> None:
    tool = ToolDefinition(
        server="fs", name="read", description="Reads v1.2\n  files. Call it\nin chunks."
    )
    assert tool_summary(tool) == "fs: read. Reads v1.2 files."
    assert tool_document(tool).endswith("in chunks.")


def test_a_tools_terms_are_weighed_by_field() -> None:
    schema: JsonObject = {
        "type": "object",
        "properties": {"path": {"description": "of a folder"}, "mode": {"description": 7}, "x": 1},
    }
    tool = ToolDefinition(
        server="disk", name="read", title="Opens", description="Content.", input_schema=schema
    )
    weights = tool_terms(tool)
    assert weights["read"] == weights["open"] > weights["content"] == weights["disk"]
    assert weights["disk"] > weights["path"] == weights["folder"] == weights["mode"] > 0.0


@pytest.mark.parametrize("properties", [None, [], "text", {}])
def test_a_schema_without_properties_adds_no_terms(properties: JsonValue) -> None:
    tool = ToolDefinition(server="fs", name="stat", input_schema={"properties": properties})
    assert set(tool_terms(tool)) == {"fs", "stat"}


def test_a_capabilitys_terms_are_of_its_name_purpose_tools_and_parameters() -> None:
    weights = capability_terms(
        "fs:ensure", "make a file", ("mail:send",), {"properties": {"path": {}}}
    )
    assert weights["ensur"] > weights["file"] > weights["send"] == weights["path"]


@given(st.text())
def test_a_document_is_never_too_long_to_store(description: str) -> None:
    assert len(capability_document("a:b", description * 100, ())) <= MAX_CHARACTERS
