"""Tool calls of running workflows, and their handler."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from uuid import UUID, uuid4

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.decision import Policy
from pml_common.contracts.gateway import CallTool
from pml_common.contracts.grant import Grant
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject, ToolDefinition
from pml_gateway.adapters.tool_router import ToolRouter
from pml_gateway.application.run_cache import RunCache
from pml_gateway.application.tool_calls import ToolCalls
from pml_gateway.domain.workflow.events import Analyzed, Decided
from pml_gateway.domain.workflow.grant import signed
from pml_gateway.domain.workflow.verdicts import Verdicts
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.ports import CallLedger, ToolServers
from services.gateway.tests.support.builders import AT, KEY, READ, TOOLS, WRITE, analyzed
from services.gateway.tests.support.fake_stores import FakeLedger, FakeWorkflows
from services.gateway.tests.support.steps import after

RUNNING: dict[tuple[Scope, UUID], Workflow] = {}
"""The runs of the tests' tool calls; each test has its own workflows."""

NODES = {READ.tool_id: "n1", WRITE.tool_id: "n2"}


def running(
    of: Workflow,
    analysis: ExecutionAnalyzed | None = None,
    tools: Mapping[str, ToolDefinition] = TOOLS,
) -> Workflow:
    """Return the workflow once it is approved: it reads at n1 and writes at n2, both /notes.txt."""
    analysis = analysis or analyzed(of, "ask", (READ, WRITE))
    at, verdicts = of.requested.requested_at, Verdicts((Policy(),), tools, of.requested.dry_run)
    waiting, _ = after(of, Analyzed(analysis, at, verdicts=verdicts))
    if waiting.approval is None:
        return keep(waiting)
    agreed = Decided(waiting.approval.approval_id, "approved", "mira", at, verdicts=verdicts)
    return keep(after(waiting, agreed)[0])


def keep(run: Workflow) -> Workflow:
    """Add a workflow to those that test gateways find."""
    RUNNING[run.scope, run.workflow_id] = run
    return run


def granted(run: Workflow) -> Grant:
    """Return the grant of a run."""
    assert run.grant is not None
    return run.grant


def with_grant(run: Workflow, **change: object) -> Workflow:
    """Return the run with a changed grant, signed anew."""
    return keep(replace(run, grant=signed(granted(run).model_copy(update=change), KEY)))


def call(
    of: Workflow,
    tool: ToolDefinition = READ,
    args: JsonObject | None = None,
    *,
    node_id: str | None = None,
    occurrence: int = 0,
) -> CallTool:
    """Build a call of an approved run; for an accepted workflow, of its run once approved."""
    run = of if of.grant is not None else running(of)
    return CallTool(
        scope=run.scope,
        workflow_id=run.workflow_id,
        node_id=node_id or NODES.get(tool.tool_id, "n9"),
        occurrence=occurrence,
        tool=tool.tool_id,
        args=args or {"path": "/notes.txt"},
        grant_digest=granted(run).digest(),
        timeout_s=2.0,
    )


class RunningWorkflows(FakeWorkflows):
    """Returns the workflows in RUNNING."""

    async def get(self, scope: Scope, workflow_id: UUID) -> Workflow | None:
        return RUNNING.get((scope, workflow_id))


def tool_calls(
    servers: ToolServers,
    ledger: CallLedger | None = None,
    instance: UUID | None = None,
    *,
    policy: Callable[[], Policy] = Policy,
    now: Callable[[], datetime] = lambda: AT,
    runs: RunCache | None = None,
) -> ToolCalls:
    """Build the handler of calls of in a process that just started."""
    return ToolCalls(
        ToolRouter([servers]),
        ledger or FakeLedger(),
        instance or uuid4(),
        runs or RunCache(RunningWorkflows()),
        lambda scope: policy(),
        now,
    )
