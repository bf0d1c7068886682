"""PML's own MCP tools: the schemas that clients see, and the arguments that are accepted."""

import json
from pathlib import Path
from typing import Any, cast

import pytest
from jsonschema import Draft202012Validator, validate
from jsonschema import ValidationError as SchemaError
from mcp_types import ToolAnnotations
from pydantic import BaseModel, ValidationError

from pml_common.contracts import catalog
from pml_common.contracts.dns import QueryRecords, RecordPage
from pml_common.contracts.registry import Discover
from pml_common.contracts.tool import JsonObject
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.api.errors import InvalidRequest
from pml_gateway.entrypoints.mcp.meta_tools import (
    META_TOOLS,
    PML_DISCOVER,
    PML_EXECUTE,
    PML_LIST_CAPABILITIES,
    DiscoverArguments,
    ListArguments,
    MetaTool,
)
from pml_gateway.ports import AgentApi, Caller, CallerSide
from services.gateway.tests.support.builders import SCOPE
from services.gateway.tests.support.dns import example

GOLDEN: dict[str, Any] = json.loads(Path(__file__).with_name("meta_tools.json").read_text())
EXECUTE, DISCOVER, LIST = (
    tool.listing.input_schema for tool in (PML_EXECUTE, PML_DISCOVER, PML_LIST_CAPABILITIES)
)


def test_clients_see_the_golden_schemas() -> None:
    schemas = {name: tool.listing.input_schema for name, tool in META_TOOLS.items()}
    assert schemas == GOLDEN, json.dumps(schemas, indent=2)


def test_schemas_are_valid_and_in_one_piece() -> None:
    for tool in META_TOOLS.values():
        schema = tool.listing.input_schema
        Draft202012Validator.check_schema(schema)
        assert "$ref" not in json.dumps(schema)
        assert "null" not in json.dumps(schema)


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
        {"intent": "x", "filter": {"min_score": 1.1}},
        {"intent": "x", "filter": {"type": "cat"}},
        {"intent": "x", "more": 1},
    ],
)
def test_schema_and_model_reject_the_same_searches(arguments: dict[str, Any]) -> None:
    with pytest.raises(SchemaError):
        validate(arguments, DISCOVER)
    with pytest.raises(ValidationError):
        DiscoverArguments.model_validate(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"intent": ""},
        {"code": ""},
        {"code": "1", "more": 1},
        {"code": "1", "name": "No Colon"},
        {"code": "1", "args": []},
        {"code": "1", "timeout": 0},
        {"code": "1", "idempotency_key": "two words"},
        {"capability": ""},
        {"dag": {}},
        {"dag": {"tasks": []}},
        {"dag": {"tasks": [{"id": "a", "tool": "no colon"}]}},
        {"dag": {"tasks": [{"id": "a", "tool": "fs:read", "depends_on": ["b c"]}]}},
        {"tool": {"default_args": {}}},
        {"code": "1", "dry_run_mocks": []},
    ],
)
def test_schema_and_model_reject_the_same_executions(arguments: dict[str, Any]) -> None:
    with pytest.raises(SchemaError):
        validate(arguments, EXECUTE)
    with pytest.raises(ValidationError):
        ExecuteRequest.model_validate(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"intent": "count"},
        {"code": "return 1;", "name": "a:b", "args": {"n": None}, "timeout": 0.5},
        {"capability": "a:b", "context": {}, "idempotency_key": "k1"},
        {
            "dag": {
                "tasks": [
                    {"id": "a", "tool": "fs:read"},
                    {"id": "b", "tool": "fs:read", "arguments": {"p": 1}, "depends_on": ["a"]},
                ]
            },
            "per_layer_validation": True,
        },
        {"tool": {"tool_id": "fs:read", "default_args": {"a": [1]}}},
        {"code": "1", "dry_run": True, "dry_run_mocks": {"fs:read": [1, {"a": None}]}},
    ],
)
def test_schema_and_model_accept_the_same_executions(arguments: dict[str, Any]) -> None:
    validate(arguments, EXECUTE)
    ExecuteRequest.model_validate(arguments)


def test_a_search_becomes_a_query_of_its_caller() -> None:
    caller = Caller(SCOPE, "ada")
    arguments = {
        "intent": "x",
        "filter": {"type": "tool", "min_score": 0.5},
        "limit": 2,
        "offset": 4,
    }
    validate(arguments, DISCOVER)
    assert DiscoverArguments.model_validate(arguments).query(caller) == Discover(
        scope=SCOPE, principal="ada", intent="x", type="tool", min_score=0.5, limit=2, offset=4
    )
    assert DiscoverArguments(intent="x").query(caller) == Discover(
        scope=SCOPE, principal="ada", intent="x"
    )


@pytest.mark.parametrize(
    "arguments",
    [{"sort": "size"}, {"namespace": ""}, {"limit": 0}, {"limit": 201}, {"text": "x"}],
)
def test_schema_and_model_reject_the_same_lists(arguments: dict[str, Any]) -> None:
    with pytest.raises(SchemaError):
        validate(arguments, LIST)
    with pytest.raises(ValidationError):
        ListArguments.model_validate(arguments)


async def test_ac05_capabilities_are_listed_of_a_namespace_in_order_without_qualified_names() -> (
    None
):
    page = example(catalog.QUERY_RECORDS)
    page = page.model_copy(update={"total": 7, "next_cursor": "more"})
    asked = list[QueryRecords]()

    class Agent:
        async def query_records(self, query: QueryRecords) -> RecordPage:
            asked.append(query)
            return page

    arguments: JsonObject = {"namespace": "fs", "sort": "date", "limit": 1, "cursor": "before"}
    validate(arguments, LIST)
    agent = cast("AgentApi", Agent())
    result = await PML_LIST_CAPABILITIES.call(agent, Caller(SCOPE, "ada"), arguments)
    assert asked == [
        QueryRecords(
            scope=SCOPE, principal="ada", namespace="fs", sort="date", limit=1, cursor="before"
        )
    ]
    assert result["structuredContent"] == {
        "capabilities": [
            {
                "name": "fs:ensure_file",
                "version": 2,
                "version_tag": "v1.1.0",
                "description": "make sure a notes file exists",
                "tags": ["files"],
                "created_at": "2026-11-21T09:30:00Z",
                "health": "unproven",
                "runs": 12,
                "success_rate": 0.917,
                "caller_faults": 0,
                "environment_faults": 0,
            }
        ],
        "total": 7,
        "counts": "version",
        "next_cursor": "more",
    }
    page = page.model_copy(update={"next_cursor": None})
    last = await PML_LIST_CAPABILITIES.call(agent, Caller(SCOPE, "ada"), {})
    assert "next_cursor" not in json.dumps(last)
    assert "webapp" not in json.dumps(last)


class GreetArguments(BaseModel):
    name: str


async def greet(
    agent: AgentApi, caller: Caller, arguments: GreetArguments, side: CallerSide
) -> JsonObject:
    return {"text": f"{caller.principal} greets {arguments.name}"}


GREET = MetaTool(
    name="pml_greet",
    title="Greet",
    description="Greet somebody.",
    annotations=ToolAnnotations(read_only_hint=True),
    arguments=GreetArguments,
    handler=greet,
)
NO_AGENT = cast("AgentApi", None)


async def test_a_meta_tool_is_one_object() -> None:
    assert GREET.listing.model_dump(by_alias=True, exclude_none=True) == {
        "name": "pml_greet",
        "title": "Greet",
        "description": "Greet somebody.",
        "inputSchema": {
            "type": "object",
            "properties": {"name": {"type": "string"}},
            "required": ["name"],
        },
        "annotations": {"readOnlyHint": True},
    }
    result = await GREET.call(NO_AGENT, Caller(SCOPE, "ada"), {"name": "mira"})
    assert result == {"text": "ada greets mira"}
    with pytest.raises(InvalidRequest, match="name is missing"):
        await GREET.call(NO_AGENT, Caller(SCOPE, "ada"), {})
