"""Programs with dynamic calls, and runs parked at one."""

from collections.abc import Sequence
from datetime import datetime

from pml_common.contracts import ids
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.decision import Verdict
from pml_common.contracts.executor import (
    RunWorkflow,
    WantedCall,
    WorkflowParked,
)
from pml_common.contracts.structure import DynamicCall
from pml_common.contracts.tool import JsonObject, args_hash
from pml_common.contracts.trace import TaskResult
from pml_gateway.domain.workflow.events import Parked, ToolVerdict
from pml_gateway.domain.workflow.workflow import Workflow
from services.gateway.tests.support.builders import WRITE, analyzed


def by_name(of: Workflow, verdict: Verdict = "ask") -> ExecutionAnalyzed:
    """Build its analysis: it reads, and has a dynamic call."""
    analysis = analyzed(of, verdict)
    call = DynamicCall(expression="mcp.call(tool, {})", line=4, column=9)
    return analysis.model_copy(update={"dynamic_calls": (call,)})


ASKED = ToolVerdict("ask", "Its server does not mark it read-only: ask.", WRITE.definition_hash)
"""The gateway's verdict on a call of fs:write."""


def parked_event(fact: WorkflowParked, at: datetime, *asked: ToolVerdict | None) -> Parked:
    """Build the event of a park."""
    return Parked(fact, at, asked or (ASKED,) * (1 + len(fact.beside)))


def parked(
    under: RunWorkflow, args: JsonObject | None = None, *, calls: Sequence[TaskResult] = ()
) -> WorkflowParked:
    """Build the park of a command's run at a call of fs:write."""
    given: JsonObject = args or {"path": "/a"}
    return WorkflowParked(
        scope=under.scope,
        event_id=ids.effect_id(under.command_id, "workflow-parked"),
        workflow_id=under.workflow_id,
        command_id=under.command_id,
        ts=0.0,
        previous=0,
        wanted=WantedCall(
            node_id="dyn:fs:write",
            occurrence=0,
            tool=WRITE.tool_id,
            args_hash=args_hash(given),
            args=given,
        ),
        grant_digest=under.grant.digest(),
        task_results=tuple(calls),
    )
