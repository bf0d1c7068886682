"""The command that runs an analysed program or continues a parked run, its grant and mocks."""

from datetime import timedelta
from typing import Final

from pydantic import JsonValue

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.decision import Decision, DryRun
from pml_common.contracts.executor import RunWorkflow
from pml_common.contracts.grant import Grant
from pml_common.contracts.parameters import needed_of
from pml_gateway.domain.workflow.events import Analyzed, Cancelled, Decided, Due
from pml_gateway.domain.workflow.grant import extend, issue
from pml_gateway.domain.workflow.layers import checkpoints
from pml_gateway.domain.workflow.workflow_state import Rules, Workflow

MOCK: Final[JsonValue] = {"success": True, "mocked": True}

CommandCause = Analyzed | Decided | Cancelled | Due
"""Events that a run command may follow from."""


def granted(
    workflow: Workflow, analysis: ExecutionAnalyzed, now: Analyzed | Decided, rules: Rules
) -> Grant:
    """Return the grant of a run that begins, or continues after an approval."""
    approved_by = workflow.approval.decided_by if workflow.approval else None
    expires_at = now.at + timedelta(seconds=workflow.timeout_s) + rules.grant_slack
    if workflow.parked is None or workflow.grant is None or isinstance(now, Analyzed):
        requested, verdicts = workflow.requested, now.verdicts
        return issue(requested, analysis, verdicts, approved_by, expires_at, rules.key)
    wanted = (workflow.parked.wanted, *workflow.parked.beside)
    return extend(workflow.grant, wanted, now.covers, approved_by, expires_at, rules.key)


def run_command(
    workflow: Workflow, analysis: ExecutionAnalyzed, grant: Grant, now: CommandCause
) -> RunWorkflow:
    """Build the command for the run under this grant; built again, it is the same, but for whether
    the run may have begun before."""
    return RunWorkflow(
        scope=workflow.scope,
        command_id=workflow.run_command_id,
        workflow_id=workflow.workflow_id,
        principal=workflow.requested.principal,
        capability=analysis.capability,
        intent=workflow.requested.intent,
        called_as=workflow.requested.called_as,
        discovery_id=workflow.requested.discovery_id,
        instrumented=analysis.instrumented,
        insertions=analysis.insertions,
        injected=analysis.injected,
        args=workflow.requested.args,
        certain=needed_of(analysis.parameters_schema),
        grant=grant,
        mocks=mocks_of(analysis.decision, workflow.requested.dry_run),
        repeatable_tools=tuple(tool for tool in now.repeatable_tools if tool in grant.tools),
        read_only_tools=tuple(tool for tool in now.read_only_tools if tool in grant.tools),
        begins=workflow.parked is None and isinstance(now, Analyzed | Decided),
        parked_under=workflow.parked.command_id if workflow.parked else None,
        checkpoints=checkpoints(workflow.requested.layers, analysis),
        timeout_s=workflow.timeout_s,
    )


def mocks_of(decision: Decision, dry_run: DryRun | None) -> dict[str, tuple[JsonValue, ...]]:
    """Return the answers of each mocked tool, in the order of its calls; the last repeats.

    A list given by the caller is such a sequence: a tool that answers a list gets a list of lists.
    """
    if dry_run is None:
        return {}
    given = dry_run.mocks
    return {
        tool.tool: _answers(given.get(tool.tool, MOCK)) for tool in decision.tools if tool.mocked
    }


def _answers(given: JsonValue) -> tuple[JsonValue, ...]:
    return tuple(given) if isinstance(given, list) and given else (given,)
