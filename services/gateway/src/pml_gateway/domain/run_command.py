"""The command by which an analysed program runs, and goes on where it was parked."""

from datetime import timedelta

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.executor import RunWorkflow
from pml_gateway.domain.dry_run import mocks_of
from pml_gateway.domain.grant import extend, issue
from pml_gateway.domain.happenings import Analyzed, Cancelled, Due, Settled
from pml_gateway.domain.layers import checkpoints
from pml_gateway.domain.rules import Rules
from pml_gateway.domain.workflow_state import Workflow

Moment = Analyzed | Settled | Cancelled | Due
"""What a command may follow from."""


def run_command(
    workflow: Workflow, analysis: ExecutionAnalyzed, now: Moment, rules: Rules
) -> RunWorkflow:
    """With a grant that outlives the run; made anew, it is the same command."""
    approved_by = workflow.approval.decided_by if workflow.approval else None
    expires_at = now.at + timedelta(seconds=workflow.timeout_s) + rules.grant_slack
    if workflow.parked is None:
        grant = issue(analysis, approved_by, expires_at, rules.secret)
    else:
        grant = extend(workflow.parked, approved_by, expires_at, rules.secret)
    return RunWorkflow(
        scope=workflow.scope,
        command_id=workflow.run_command_id,
        workflow_id=workflow.workflow_id,
        principal=workflow.requested.principal,
        capability=analysis.capability,
        intent=workflow.requested.intent,
        instrumented=analysis.instrumented,
        insertions=analysis.insertions,
        injected=analysis.injected,
        args=workflow.requested.args,
        grant=grant,
        mocks=mocks_of(analysis.decision, workflow.requested.dry_run),
        repeatable_tools=tuple(tool for tool in now.repeatable_tools if tool in grant.tools),
        askable=analysis.decision.askable,
        checkpoints=checkpoints(workflow.requested.layers, analysis),
        timeout_s=workflow.timeout_s,
    )
