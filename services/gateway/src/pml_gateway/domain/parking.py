"""A run that stands at a call, or before a layer, which a person must agree to (B7, B8, F4)."""

from collections.abc import Sequence

from pml_common.calls_made import calls_made
from pml_common.contracts.decision import Decision, ToolDecision
from pml_common.contracts.error import ErrorKind, WorkflowError
from pml_common.contracts.executor import WantedCall, WorkflowParked
from pml_gateway.domain import layers
from pml_gateway.domain.workflow_state import Workflow


def unaskable(workflow: Workflow, parked: WorkflowParked) -> str | None:
    """Why nobody can be asked about what a run waits for, or None."""
    wanted, analysis = parked.wanted, workflow.analysis
    askable = analysis.decision.askable if analysis else {}
    if wanted.layer is not None and not layers.is_checkpoint(workflow, wanted):
        return f"nobody wanted to be asked before {layers.name_of(workflow, wanted)}"
    if wanted.layer is None and askable.get(wanted.tool) != wanted.definition_hash:
        return f"{wanted.tool} is not among the tools that a person could be asked about"
    grant = parked.grant
    if (grant.scope, grant.workflow_id) != (workflow.scope, workflow.workflow_id):
        return "the run stands under the grant of another workflow"
    return None


def question(workflow: Workflow, parked: WorkflowParked) -> Decision:
    """What a person is asked about a parked run."""
    wanted = parked.wanted
    if wanted.layer is not None:
        return layers.question(workflow, parked)
    reason = sentence(workflow, parked)
    asked = ToolDecision(
        tool=wanted.tool,
        verdict="ask",
        reason=reason,
        definition_hash=wanted.definition_hash,
        node_ids=(wanted.node_id,),
    )
    return Decision(verdict="ask", reasons=(reason,), tools=(asked,))


def sentence(workflow: Workflow, parked: WorkflowParked) -> str:
    """Why a person must agree, and what the run has done so far."""
    if parked.wanted.layer is not None:
        return layers.sentence(workflow, parked)
    lines = lines_of(workflow, parked.wanted)
    where = f" on line {' or '.join(map(str, lines))}" if lines else ""
    return (
        f"The run waits at its call of {parked.wanted.tool}{where}, which nobody could see before "
        f"it ran: ask. {calls_made(parked.task_results)}"
    )


def name_of(workflow: Workflow, parked: WorkflowParked) -> str:
    """What a person agrees to, in few words."""
    wanted = parked.wanted
    if wanted.layer is not None:
        return layers.name_of(workflow, wanted)
    return f"its call of {wanted.tool}"


def lines_of(workflow: Workflow, wanted: WantedCall) -> Sequence[int]:
    """The author's lines on which the wanted call may stand: its own, or all those of calls that
    only the run can tell."""
    if wanted.line is not None:
        return (wanted.line,)
    calls = workflow.analysis.dynamic_calls if workflow.analysis else ()
    return sorted({call.line for call in calls})


def stopped(
    workflow: Workflow, parked: WorkflowParked, why: str, kind: ErrorKind = "denied"
) -> WorkflowError:
    """The end of a run that nobody let go on, in the words of `why`."""
    wanted = parked.wanted
    lines = lines_of(workflow, wanted)
    return WorkflowError(
        kind=kind,
        message=f"{why}. The run had stopped there. {calls_made(parked.task_results)}",
        node_id=wanted.node_id,
        line=lines[0] if len(lines) == 1 else None,
        column=wanted.column,
        tool=wanted.tool,
        arguments=wanted.preview,
    )
