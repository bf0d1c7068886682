"""The command by which an analysed program runs, and goes on where it was parked."""

from datetime import timedelta

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.grant import Grant
from pml_gateway.domain.workflow.dry_run import mocks_of
from pml_gateway.domain.workflow.events import Analyzed, Cancelled, Decided, Due
from pml_gateway.domain.workflow.grant import extend, issue
from pml_gateway.domain.workflow.layers import checkpoints
from pml_gateway.domain.workflow.rules import Rules
from pml_gateway.domain.workflow.workflow_state import Workflow

Moment = Analyzed | Decided | Cancelled | Due
"""What a command may follow from."""


def granted(
    workflow: Workflow, analysis: ExecutionAnalyzed, now: Analyzed | Decided, rules: Rules
) -> Grant:
    """The grant of a run that begins, or goes on after a person agreed."""
    approved_by = workflow.approval.decided_by if workflow.approval else None
    expires_at = now.at + timedelta(seconds=workflow.timeout_s) + rules.grant_slack
    if workflow.parked is None or workflow.grant is None or isinstance(now, Analyzed):
        requested, verdicts = workflow.requested, now.verdicts
        return issue(requested, analysis, verdicts, approved_by, expires_at, rules.key)
    wanted = (workflow.parked.wanted, *workflow.parked.beside)
    return extend(workflow.grant, wanted, now.covers, approved_by, expires_at, rules.key)


def run_command(
    workflow: Workflow, analysis: ExecutionAnalyzed, grant: Grant, now: Moment
) -> RunWorkflow:
    """The command for the run that has this grant; made anew, it is the same."""
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
        checkpoints=checkpoints(workflow.requested.layers, analysis),
        timeout_s=workflow.timeout_s,
    )
