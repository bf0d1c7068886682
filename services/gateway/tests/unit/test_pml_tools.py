"""Our own tools: what is listed is what is understood."""

from typing import Any, cast

import pytest
from jsonschema import Draft202012Validator, validate
from jsonschema import ValidationError as Misfit
from mcp_types import Tool
from pydantic import ValidationError

from pml_common.contracts.registry import Discover
from pml_common.contracts.scope import Scope
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.api.pml_tools import LISTINGS, OUR_NAMES, DiscoverArguments

EXECUTE, DISCOVER = (cast("dict[str, Any]", listing["inputSchema"]) for listing in LISTINGS)


def test_the_listings_are_tools_by_our_names() -> None:
    tools = [Tool.model_validate(listing) for listing in LISTINGS]
    assert {tool.name for tool in tools} == OUR_NAMES
    for tool in tools:
        Draft202012Validator.check_schema(tool.input_schema)


def test_every_field_of_a_request_is_described() -> None:
    fields = {field.alias or name for name, field in ExecuteRequest.model_fields.items()}
    assert EXECUTE["properties"].keys() == fields
    assert all(field["description"] for field in EXECUTE["properties"].values())
    assert DISCOVER["properties"].keys() == DiscoverArguments.model_fields.keys()


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"intent": ""},
        {"intent": "x", "limit": 0},
        {"intent": "x", "limit": 101},
        {"intent": "x", "offset": -1},
        {"intent": "x", "filter": {"minScore": 1.1}},
        {"intent": "x", "filter": {"type": "cat"}},
        {"intent": "x", "more": 1},
    ],
)
def test_what_the_schema_refuses_we_refuse(arguments: dict[str, Any]) -> None:
    with pytest.raises(Misfit):
        validate(arguments, DISCOVER)
    with pytest.raises(ValidationError):
        DiscoverArguments.model_validate(arguments)


def test_a_search_becomes_a_question_in_its_scope() -> None:
    scope = Scope(org="acme", project="web")
    arguments = {
        "intent": "x",
        "filter": {"type": "tool", "minScore": 0.5},
        "limit": 2,
        "offset": 4,
    }
    validate(arguments, DISCOVER)
    assert DiscoverArguments.model_validate(arguments).query(scope) == Discover(
        scope=scope, intent="x", type="tool", min_score=0.5, limit=2, offset=4
    )
    assert DiscoverArguments(intent="x").query(scope) == Discover(scope=scope, intent="x")
