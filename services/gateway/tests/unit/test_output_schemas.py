"""The schemas of structured answers hold for every answer."""

from datetime import UTC, datetime
from typing import cast
from uuid import UUID

import pytest
from jsonschema import Draft202012Validator, validate
from jsonschema import ValidationError as SchemaError
from pydantic import JsonValue

from pml_common.contracts import catalog
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.registry import DiscoveryPage
from pml_common.contracts.structure import Diagnostic
from pml_gateway.domain.api.api import ApprovalAsked, ExecuteResponse, ResultPage
from pml_gateway.domain.api.calls import TaskAnswer
from pml_gateway.domain.api.mcp_results import execute_result
from pml_gateway.domain.api.output_schemas import discover_output, execute_output
from services.gateway.tests.support.dns import example

WORKFLOW = UUID(int=1)
TASK = TaskAnswer(id="n1", node_id="n1", tool="a:b", success=True, duration_ms=1.5, preview="1")
HITS: DiscoveryPage = example(catalog.DISCOVER)
RESULTS: list[JsonValue] = [None, 1, "a", [1], {"a": None}, True]
ANSWERS = [
    *(
        ExecuteResponse(status="success", result=result, workflow_id=WORKFLOW, tasks=(TASK,))
        for result in RESULTS
    ),
    ExecuteResponse(status="success", result=None, error=None, approval=None, task=TASK),
    ExecuteResponse(status="running", workflow_id=WORKFLOW, joined=True, next=None),
    ExecuteResponse(
        status="error",
        error=WorkflowError(kind="tool_error", message="no", line=1, column=2),
        warnings=(Diagnostic(severity="warning", message="odd", line=1, column=1),),
        notices=("args.x is odd",),
    ),
    ExecuteResponse(
        status="approval_required",
        approval=ApprovalAsked(
            id=WORKFLOW,
            reasons=("r",),
            tools=("a:b",),
            calls=(),
            shown_digest="d",
            whole_at="/x",
            expires_at=datetime(2026, 1, 1, tzinfo=UTC),
        ),
    ),
    ExecuteResponse(status="suggestions", suggestions=HITS.hits, discovery_id=WORKFLOW),
    ExecuteResponse(status="success", page=ResultPage(text="a", offset=0, total=9), dry_run=True),
]


@pytest.mark.parametrize("answer", ANSWERS)
def test_every_answer_of_an_execution_is_valid(answer: ExecuteResponse) -> None:
    validate(execute_result(answer)["structuredContent"], execute_output())


def test_a_discovery_is_valid_and_says_which_it_was() -> None:
    page = HITS.model_copy(update={"discovery_id": WORKFLOW, "degraded": True})
    shown = page.model_dump(mode="json", exclude_none=True)
    validate(shown, discover_output())
    del shown["discovery_id"]
    with pytest.raises(SchemaError):
        validate(shown, discover_output())


def test_the_schemas_are_valid_and_short() -> None:
    fields = execute_output()["properties"]
    for schema in (execute_output(), discover_output()):
        Draft202012Validator.check_schema(schema)
        assert len(str(schema)) < 2000
    assert {"workflowId", "capabilityName", "next"} <= set(cast(dict[str, object], fields))
