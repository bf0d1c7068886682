"""Requests to execute, and their responses."""

import json

import pytest
from pydantic import ValidationError

from pml_gateway.domain.api.api import (
    ExecuteRequest,
    ExecuteResponse,
    mode_of,
    program_of,
    request_hash,
)
from pml_gateway.domain.api.errors import InvalidRequest
from pml_gateway.domain.sources.dag_source import Dag, DagTask, ToolSource
from services.gateway.tests.support.builders import workflow

DAG = Dag(tasks=(DagTask(id="a", tool="fs:read"),))


def test_every_source_becomes_a_program() -> None:
    assert program_of(ExecuteRequest(code="return 1;")) == "return 1;"
    assert program_of(ExecuteRequest(dag=DAG)) == (
        'const t1 = await mcp.call("fs:read", {});\nreturn { "a": t1 };\n'
    )
    delegating = program_of(ExecuteRequest(tool=ToolSource(tool_id="fs:read")))
    assert delegating == 'return await mcp.call("fs:read", args);\n'
    assert program_of(ExecuteRequest(intent="count")) is None


@pytest.mark.parametrize(
    ("request_", "mode"),
    [
        (ExecuteRequest(code="return 1;"), "direct"),
        (ExecuteRequest(code="return 1;", intent="count", name="a:b", timeout=3600), "direct"),
        (ExecuteRequest(dag=DAG, name="a:b"), "direct"),
        (ExecuteRequest(tool=ToolSource(tool_id="fs:read"), name="a:b"), "direct"),
        (ExecuteRequest(capability="a:b", args={"n": 1}), "by_name"),
        (ExecuteRequest(capability="a:b", intent="count"), "by_name"),
        (ExecuteRequest(intent="count"), "suggest"),
        (ExecuteRequest(intent="count", context={"n": 1}), "speculate"),
        (ExecuteRequest(intent="count", args={}), "speculate"),
    ],
)
def test_the_fields_given_determine_the_mode(request_: ExecuteRequest, mode: str) -> None:
    assert mode_of(request_, 3600) == mode


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (ExecuteRequest(), "code"),
        (ExecuteRequest(args={}), "code"),
        (ExecuteRequest(code="1", capability="a:b"), "capability"),
        (ExecuteRequest(code="1", dag=DAG), "dag"),
        (ExecuteRequest(dag=DAG, capability="a:b"), "capability"),
        (ExecuteRequest(intent="count", name="a:c"), "name"),
        (ExecuteRequest(capability="a:b", name="a:c"), "name"),
        (ExecuteRequest(code="1", args={}, context={}), "context"),
        (ExecuteRequest(code="1", timeout=3601), "timeout"),
        (ExecuteRequest(code="1", update=True), "update"),
        (ExecuteRequest(code="1", name="a:b", version_tag="v2.0.0"), "version_tag"),
        (ExecuteRequest(code="1", name="a:b", change_summary="less"), "change_summary"),
    ],
)
def test_fields_that_conflict_are_named(request_: ExecuteRequest, field: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        mode_of(request_, 3600)
    assert refused.value.field == field
    assert str(refused.value).startswith(field)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"code": "1", "graph": {}}, "graph"),
        ({"code": ""}, "code"),
        ({"code": "1", "name": "No Colon"}, "name"),
        ({"code": "1", "timeout": 0}, "timeout"),
        ({"code": "1", "timeout": True}, "timeout"),
        ({"code": "1", "timeout": "9"}, "timeout"),
        ({"code": "1", "args": []}, "args"),
        ({"code": "1", "args": {"deep": [{"n": float("inf")}]}}, "args"),
        ({"code": "1", "idempotency_key": "two words"}, "idempotency_key"),
        ({"intent": ""}, "intent"),
    ],
)
def test_an_invalid_field_is_named(body: dict[str, object], field: str) -> None:
    with pytest.raises(ValidationError) as refused:
        ExecuteRequest.model_validate(body)
    assert [error["loc"][0] for error in refused.value.errors()] == [field]


def test_finite_numbers_of_all_sizes_are_accepted() -> None:
    args = {"big": 10**30, "small": 1e-300, "list": [1.5, {"n": None}]}
    assert ExecuteRequest.model_validate({"code": "1", "args": args}).arguments == args


def test_context_is_a_synonym_of_args() -> None:
    assert ExecuteRequest(code="1", context={"n": 1}).arguments == {"n": 1}
    assert ExecuteRequest(code="1", args={"n": 2}).arguments == {"n": 2}
    assert ExecuteRequest(code="1").arguments == {}


def test_equal_requests_have_one_hash_whatever_their_key_and_order() -> None:
    one = ExecuteRequest(code="1", args={"a": 1, "b": 2}, idempotency_key="k1")
    two = ExecuteRequest(code="1", args={"b": 2, "a": 1}, idempotency_key="k2")
    other = ExecuteRequest(code="1", args={"a": 1, "b": 3}, idempotency_key="k1")
    assert request_hash(one) == request_hash(two) != request_hash(other)


def test_a_response_has_only_the_fields_that_were_set() -> None:
    found = workflow()
    answer = ExecuteResponse(status="success", result=None, workflow_id=found.workflow_id)
    assert json.loads(answer.to_json()) == {
        "status": "success",
        "result": None,
        "workflow_id": str(found.workflow_id),
    }
