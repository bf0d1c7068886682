"""A DAG with approvals between its layers: read; write and look; again; last."""

from dataclasses import replace
from uuid import UUID

from pydantic import JsonValue

from pml_common.contracts import ids
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.decision import ToolDecision, Verdict
from pml_common.contracts.executor import RunWorkflow, WantedCall, WorkflowParked
from pml_common.contracts.structure import (
    Argument,
    ArrayArgument,
    CapabilityNode,
    ForkNode,
    JoinNode,
    LiteralArgument,
    ObjectArgument,
    ParameterArgument,
    ReferenceArgument,
    StaticStructure,
    TaskNode,
)
from pml_common.contracts.tool import JsonObject, args_hash
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.workflow.events import Analyzed, Decided, Parked
from pml_gateway.domain.workflow.workflow import Workflow
from services.gateway.tests.support.builders import (
    AT,
    READ,
    WRITE,
    analyzed,
    later,
    made,
    workflow,
)
from services.gateway.tests.support.steps import after

TASKS: list[JsonObject] = [
    {"id": "read", "tool": "fs:read"},
    {"id": "write", "tool": "fs:write", "depends_on": ["read"]},
    {"id": "look", "tool": "cap:fs:look", "depends_on": ["read"]},
    {"id": "again", "tool": "fs:read", "depends_on": ["write", "look"]},
    {"id": "last", "tool": "fs:read", "depends_on": ["again"]},
]
ARGUMENTS: dict[str, Argument] = {
    "path": ReferenceArgument(expression="t1.items[0].path", node_id="n1"),
    "text": ParameterArgument(parameter_name="text"),
    "mode": LiteralArgument(value="w"),
    "more": ObjectArgument(
        fields={
            "long": ParameterArgument(parameter_name="long"),
            "list": ArrayArgument(items=(ReferenceArgument(expression="t1.n", node_id="n1"),)),
        }
    ),
}
RESULT: JsonObject = {"items": [{"path": "/a"}], "n": 7}
ARGS: JsonObject = {"text": "hello", "long": "x" * 300, "odd name": 1}


def requested(**more: object) -> ExecuteRequest:
    """Build the request of the DAG, with approvals between its layers."""
    body = {"dag": {"tasks": TASKS}, "per_layer_validation": True, "args": ARGS}
    return ExecuteRequest.model_validate({**body, **more})


def analysis_of(of: Workflow, verdict: Verdict = "allow") -> ExecutionAnalyzed:
    """Build the analysis of the DAG: fs:read is read-only, fs:write is not."""
    nodes = (
        TaskNode(id="n1", tool="fs:read", line=1, column=7),
        ForkNode(id="f1", line=2, column=7),
        TaskNode(id="n2", tool="fs:write", line=3, column=3, arguments=ARGUMENTS),
        CapabilityNode(id="n3", name="fs:look", line=4, column=3),
        JoinNode(id="j1", line=2, column=7),
        TaskNode(id="n4", tool="fs:read", line=6, column=7),
        TaskNode(id="n5", tool="fs:read", line=7, column=7),
    )
    analysis = analyzed(of, verdict)
    decided = (
        ("fs:read", READ.definition_hash, ("n1", "n3", "n4", "n5"), True),
        ("fs:write", WRITE.definition_hash, ("n2",), False),
    )
    tools = tuple(
        ToolDecision(
            tool=tool,
            verdict=verdict,
            reason="",
            definition_hash=definition_hash,
            node_ids=node_ids,
            read_only=read_only,
        )
        for tool, definition_hash, node_ids, read_only in decided
    )
    decision = analysis.decision.model_copy(update={"tools": tools})
    return analysis.model_copy(
        update={"structure": StaticStructure(nodes=nodes), "decision": decision}
    )


def running() -> tuple[Workflow, RunWorkflow]:
    """Return a workflow whose run needs no approval, and its command."""
    new = workflow(request=requested())
    return with_command(*after(new, Analyzed(analysis_of(new), AT)))


def with_command(now: Workflow, effects: tuple[object, ...]) -> tuple[Workflow, RunWorkflow]:
    """Return the workflow and the run command among its effects."""
    command = effects[-1]
    assert isinstance(command, RunWorkflow)
    return now, command


def waits(under: RunWorkflow, layer: int, node_id: str, *calls: tuple[str, JsonValue]) -> Parked:
    """Build the park of a command's run before a layer; calls by node id and result."""
    tool = "fs:write" if node_id == "n2" else "fs:read"
    fact = WorkflowParked(
        scope=under.scope,
        event_id=ids.effect_id(under.command_id, "workflow-parked"),
        workflow_id=under.workflow_id,
        command_id=under.command_id,
        ts=0.0,
        wanted=WantedCall(
            node_id=node_id,
            occurrence=0,
            tool=tool,
            args_hash=args_hash({}),
            args={},
            layer=layer,
        ),
        grant_digest=under.grant.digest(),
        task_results=tuple(made(node_id=node, result=result) for node, result in calls),
    )
    return Parked(fact, later(5))


def parked_run() -> tuple[Workflow, RunWorkflow]:
    """Return the workflow, parked before the second layer, and its command."""
    now, command = running()
    now, _ = after(now, waits(command, 2, "n2", ("n1", RESULT)))
    assert now.state == "awaiting_approval"
    return now, command


def asked_for(now: Workflow) -> UUID:
    """Return the id of the approval that it waits for."""
    assert now.approval is not None
    return now.approval.approval_id


def answer(now: Workflow, seconds: float = 10, **more: object) -> Decided:
    """Build a person's decision, an approval unless changed."""
    settled = Decided(asked_for(now), "approved", "mira", later(seconds))
    return replace(settled, **more)  # pyright: ignore[reportArgumentType] - handed on
