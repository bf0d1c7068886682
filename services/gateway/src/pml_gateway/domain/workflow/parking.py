"""Parked runs: at calls, or before a layer, that a person must approve."""

from collections.abc import Sequence
from itertools import zip_longest

from pml_common.calls_made import calls_made
from pml_common.contracts.decision import Decision, ToolDecision
from pml_common.contracts.error import ErrorKind, WorkflowError
from pml_common.contracts.executor import WantedCall, WorkflowParked
from pml_gateway.domain.workflow import layers
from pml_gateway.domain.workflow.events import Parked
from pml_gateway.domain.workflow.preview import previewed
from pml_gateway.domain.workflow.verdicts import Verdicts
from pml_gateway.domain.workflow.workflow_state import Workflow


def wanted_calls(parked: WorkflowParked) -> tuple[WantedCall, ...]:
    """Return the calls at which a run is parked, in their order."""
    return (parked.wanted, *parked.beside)


def why_unapprovable(workflow: Workflow, parked: Parked) -> str | None:
    """Return why a park cannot be put to a person, or None."""
    message = parked.message
    if workflow.grant is None or workflow.grant.digest() != message.grant_digest:
        return "the run uses a grant that is not its workflow's"
    if message.wanted.layer is not None:
        is_known = layers.is_checkpoint(workflow, message.wanted)
        name = layers.name_of(workflow, message.wanted)
        return None if is_known else f"no approval was requested before {name}"
    for call, ruled in zip_longest(wanted_calls(message), parked.verdicts):
        if call is None or ruled is None:
            tool = call.tool if call else "a tool"
            return f"{tool} is not there: no server lists it"
        if ruled.verdict == "deny":
            return f"the policy forbids this call of {call.tool}: {ruled.reason}"
    return None


def denied_calls(parked: WorkflowParked | None, verdicts: Verdicts) -> str | None:
    """Return why the present policy denies a call at which a run is parked, or None."""
    for call in wanted_calls(parked) if parked and parked.wanted.layer is None else ():
        said = verdicts.on(call.tool, call.args, is_all=True)
        if said is not None and said[0] == "deny":
            return f"{call.tool}: {said[1]}"
    return None


def with_definitions(parked: Parked) -> WorkflowParked:
    """Return the park with the hashes of the definitions that a person is asked about."""
    message = parked.message
    if message.wanted.layer is not None:
        return message
    wanted, *beside = (
        call.model_copy(update={"definition_hash": ruled.definition_hash if ruled else ""})
        for call, ruled in zip(wanted_calls(message), parked.verdicts, strict=True)
    )
    return message.model_copy(update={"wanted": wanted, "beside": tuple(beside)})


def question(workflow: Workflow, parked: WorkflowParked) -> Decision:
    """Return the decision that asks a person to approve a parked run's calls."""
    if parked.wanted.layer is not None:
        return layers.question(workflow, parked)
    reason, calls = sentence(workflow, parked), wanted_calls(parked)
    asked = tuple(
        ToolDecision(
            tool=tool,
            verdict="ask",
            reason=reason,
            definition_hash=next(one.definition_hash for one in calls if one.tool == tool),
            node_ids=tuple(dict.fromkeys(one.node_id for one in calls if one.tool == tool)),
        )
        for tool in dict.fromkeys(one.tool for one in calls)
    )
    return Decision(verdict="ask", reasons=(reason,), tools=asked)


def sentence(workflow: Workflow, parked: WorkflowParked) -> str:
    """Return why approval is needed and what the run has done so far."""
    wanted = parked.wanted
    if wanted.layer is not None:
        return layers.sentence(workflow, parked)
    lines = lines_of(workflow, wanted)
    where = f" on line {' or '.join(map(str, lines))}" if lines else ""
    more = f", and {len(parked.beside)} more calls wait beside it" if parked.beside else ""
    why = f": {wanted.why}" if wanted.why else ""
    return (
        f"The run waits at its call of {wanted.tool}{where}{why}{more}: ask. "
        f"{calls_made(parked.task_results)}"
    )


def name_of(workflow: Workflow, parked: WorkflowParked) -> str:
    """Return a short name of what is to be approved."""
    wanted = parked.wanted
    if wanted.layer is not None:
        return layers.name_of(workflow, wanted)
    more = f" and {len(parked.beside)} more" if parked.beside else ""
    return f"its call of {wanted.tool}{more}"


def lines_of(workflow: Workflow, wanted: WantedCall) -> Sequence[int]:
    """Return the source lines that the wanted call may be on: its own, or those of all dynamic
    calls."""
    if wanted.line is not None:
        return (wanted.line,)
    calls = workflow.analysis.dynamic_calls if workflow.analysis else ()
    return sorted({call.line for call in calls})


def stopped(
    workflow: Workflow, parked: WorkflowParked, why: str, kind: ErrorKind = "denied"
) -> WorkflowError:
    """Return the error of a parked run that was not approved; `why` opens its message."""
    wanted = parked.wanted
    lines = lines_of(workflow, wanted)
    return WorkflowError(
        kind=kind,
        message=f"{why}. The run was parked there. {calls_made(parked.task_results)}",
        node_id=wanted.node_id,
        line=lines[0] if len(lines) == 1 else None,
        column=wanted.column,
        tool=wanted.tool,
        arguments=previewed(wanted.args),
    )
