"""Programs with calls that only the run can tell, and runs that stand at one."""

from collections.abc import Sequence

from pml_common.contracts import ids
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.decision import Verdict
from pml_common.contracts.executor import RunWorkflow, WantedCall, WorkflowParked
from pml_common.contracts.structure import DynamicCall
from pml_common.contracts.tool import JsonObject, args_hash
from pml_common.contracts.trace import TaskResult
from pml_gateway.domain.workflow import Workflow
from services.gateway.tests.examples import WRITE, analyzed


def by_name(of: Workflow, verdict: Verdict = "ask") -> ExecutionAnalyzed:
    """Its analysis: it reads, and calls a tool that only its run will tell; a person may be asked
    about fs:write then."""
    analysis = analyzed(of, verdict)
    askable = {WRITE.tool_id: WRITE.definition_hash}
    call = DynamicCall(expression="mcp.call(tool, {})", line=4, column=9)
    decision = analysis.decision.model_copy(update={"askable": askable})
    return analysis.model_copy(update={"dynamic_calls": (call,), "decision": decision})


def parked(
    under: RunWorkflow, args: JsonObject | None = None, *, calls: Sequence[TaskResult] = ()
) -> WorkflowParked:
    """The run of a command stands at a call of fs:write."""
    given: JsonObject = args or {"path": "/a"}
    return WorkflowParked(
        scope=under.scope,
        event_id=ids.effect_id(under.command_id, "workflow-parked"),
        workflow_id=under.workflow_id,
        command_id=under.command_id,
        wanted=WantedCall(
            node_id="dyn:fs:write",
            occurrence=0,
            tool=WRITE.tool_id,
            definition_hash=WRITE.definition_hash,
            args_hash=args_hash(given),
            preview=given,
        ),
        grant=under.grant,
        task_results=tuple(calls),
    )
