"""Dry runs: the request, the command to the executor, the calls that the gateway refuses."""

import pytest
from pydantic import JsonValue, ValidationError

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.decision import DryRun
from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.gateway import CallTool
from pml_common.contracts.parameters import CERTAIN
from pml_common.contracts.tool import ToolDefinition
from pml_gateway.domain.api.api import ExecuteRequest, mode_of, request_hash
from pml_gateway.domain.api.errors import InvalidRequest
from pml_gateway.domain.api.responses import execute_response
from pml_gateway.domain.api.views import view_of
from pml_gateway.domain.workflow.events import Analyzed
from pml_gateway.domain.workflow.workflow import Workflow
from services.gateway.tests.support.builders import (
    AT,
    READ,
    WRITE,
    analyzed,
    finished,
    made,
    workflow,
)
from services.gateway.tests.support.calling import call, granted, running, tool_calls
from services.gateway.tests.support.harness import FakeServers
from services.gateway.tests.support.steps import after

CODE = "return 1;"
MOCKS: list[tuple[dict[str, JsonValue] | None, tuple[JsonValue, ...]]] = [
    (None, ({"success": True, "mocked": True},)),
    ({"fs:write": {"bytes": 3}}, ({"bytes": 3},)),
    ({"fs:write": [1, 2]}, (1, 2)),
    ({"fs:write": [[]]}, ([],)),
    ({"fs:write": []}, ([],)),
    ({"fs:write": None}, (None,)),
    ({"fs:other": 1}, ({"success": True, "mocked": True},)),
]


def dry_workflow(mocks: dict[str, JsonValue] | None = None) -> Workflow:
    return workflow(ExecuteRequest(code=CODE, dry_run=True, dry_run_mocks=mocks))


def dry_analysis(of: Workflow) -> ExecutionAnalyzed:
    """Build its analysis, in which tools that write are mocked."""
    analysis = analyzed(of, "allow", (READ, WRITE))
    tools = tuple(
        tool.model_copy(update={"mocked": tool.tool == WRITE.tool_id})
        for tool in analysis.decision.tools
    )
    decision = analysis.decision.model_copy(update={"tools": tools})
    return analysis.model_copy(update={"decision": decision, "dry_run": True})


@pytest.mark.parametrize(
    ("given", "told"),
    MOCKS,
)
def test_the_executor_is_told_what_answers_the_tools_that_are_not_called(
    given: dict[str, JsonValue] | None, told: tuple[JsonValue, ...]
) -> None:
    new = dry_workflow(given)
    _, (command,) = after(new, Analyzed(dry_analysis(new), AT))
    assert isinstance(command, RunWorkflow)
    assert command.grant.dry_run
    assert command.mocks == {"fs:write": told}


def test_a_run_that_is_not_dry_has_no_mocks() -> None:
    new = workflow()
    _, (command,) = after(new, Analyzed(analyzed(new), AT))
    assert isinstance(command, RunWorkflow)
    assert (command.mocks, command.grant.dry_run) == ({}, False)


def test_the_executor_is_told_which_arguments_the_program_needs() -> None:
    new, certain = workflow(), {"required": ["path", "limit"]}
    schema = {"type": "object", "required": ["limit"], CERTAIN: {"required": ["path"]}}
    analysis = analyzed(new).model_copy(update={"parameters_schema": schema})
    _, (command,) = after(new, Analyzed(analysis, AT))
    assert isinstance(command, RunWorkflow)
    assert command.certain == certain


def test_the_answer_and_the_view_say_that_it_was_dry_and_which_calls_were_mocked() -> None:
    new = dry_workflow()
    running, _ = after(new, Analyzed(dry_analysis(new), AT))
    mocked = made("fs:write").model_copy(update={"mocked": True})
    run = finished(new, calls=[mocked])
    ended, _ = after(running, run)
    answer = execute_response(ended, None)
    assert answer.dry_run
    assert '"dry_run":true' in answer.to_json()
    assert [task.mocked for task in answer.tasks] == [True]
    assert view_of(ended).dry_run
    assert not view_of(workflow()).dry_run
    assert "dry_run" not in execute_response(workflow(), None).to_json()


def test_the_hash_of_a_request_tells_dry_from_wet_and_one_mock_from_another() -> None:
    wet = ExecuteRequest(code=CODE)
    named = ExecuteRequest(code=CODE, dry_run=True, dry_run_mocks={"a:b": 1})
    hashes = {
        request_hash(each)
        for each in (wet, named, named.model_copy(update={"dry_run_mocks": None}))
    }
    assert len(hashes) == 3
    assert workflow(named).requested.dry_run == DryRun(mocks={"a:b": 1})
    assert workflow(wet).requested.dry_run is None


def test_mocks_without_a_dry_run_are_a_mistake() -> None:
    with pytest.raises(InvalidRequest, match="dry_run_mocks") as refused:
        mode_of(ExecuteRequest(code=CODE, dry_run_mocks={}), 60)
    assert refused.value.field == "dry_run_mocks"


def test_a_mock_is_for_a_tool_by_its_id() -> None:
    with pytest.raises(ValidationError):
        ExecuteRequest(code=CODE, dry_run=True, dry_run_mocks={"write": 1})


def under_a_dry_grant(tool: ToolDefinition) -> CallTool:
    of = dry_workflow()
    return call(running(of, dry_analysis(of)), tool)


async def test_the_gateway_does_not_call_what_the_executor_should_have_mocked() -> None:
    servers = FakeServers()
    calls = tool_calls(servers)
    refused = await calls.on_call_tool(under_a_dry_grant(WRITE))
    assert refused.status == "refused"
    assert "a dry run does not call it" in (refused.message or "")
    assert (await calls.on_call_tool(under_a_dry_grant(READ))).status == "ok"
    assert servers.made == ["fs:read"]


async def test_a_grant_whose_dryness_was_taken_off_is_another() -> None:
    servers, of = FakeServers(), dry_workflow()
    run = running(of, dry_analysis(of))
    wet = granted(run).model_copy(update={"dry_run": False})
    asked = call(run, WRITE).model_copy(update={"grant_digest": wet.digest()})
    assert (await tool_calls(servers).on_call_tool(asked)).status == "refused"
    assert servers.made == []
