"""Search documents."""

from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts.tool import ToolDefinition
from pml_registry.domain.documents import (
    MAX_CHARACTERS,
    as_words,
    capability_document,
    tool_document,
)


def test_identifiers_are_split_into_words() -> None:
    assert as_words("fs:readTextFile") == "fs read Text File"
    assert as_words("git-hub:create_issue.v2") == "git hub create issue v2"


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


@given(st.text())
def test_a_document_is_never_too_long_to_store(description: str) -> None:
    assert len(capability_document("a:b", description * 100, ())) <= MAX_CHARACTERS
