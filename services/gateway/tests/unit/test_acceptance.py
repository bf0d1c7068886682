"""Workflows as they are accepted from requests."""

import pytest

from pml_common.contracts.source import CapabilitySource, FromDag, FromTool
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.api import ExecuteRequest
from services.gateway.tests.support.builders import workflow

CALLS: JsonObject = {
    "tasks": [
        {"id": "a", "tool": "fs:read", "arguments": {"path": "$INPUT[path]", "deep": [None, {}]}},
        {"id": "b", "tool": "fs:read", "depends_on": ["a"]},
    ]
}
READ: JsonObject = {"tool_id": "fs:read", "default_args": {"path": "/a"}}


@pytest.mark.parametrize(
    ("body", "source"),
    [
        ({"code": "return 1;"}, None),
        ({"capability": "fs:look"}, None),
        ({"dag": CALLS}, FromDag.model_validate({"dag": CALLS})),
        ({"tool": {"tool_id": "fs:read"}}, FromTool(tool_id="fs:read")),
        ({"tool": READ}, FromTool(tool_id="fs:read", default_args={"path": "/a"})),
    ],
)
def test_a_request_is_kept_as_the_source_in_its_own_words(
    body: dict[str, object], source: CapabilitySource | None
) -> None:
    assert workflow(ExecuteRequest.model_validate(body)).requested.source == source


@pytest.mark.parametrize(
    ("body", "submitted"),
    [
        ({"code": "return 1;"}, True),
        ({"capability": "fs:look"}, False),
        ({"dag": CALLS}, False),
        ({"tool": READ}, False),
        ({"intent": "look", "context": {"path": "/a"}}, False),
    ],
)
def test_only_code_of_the_request_was_written_by_its_client(
    body: dict[str, object], submitted: bool
) -> None:
    assert workflow(ExecuteRequest.model_validate(body)).requested.submitted is submitted
