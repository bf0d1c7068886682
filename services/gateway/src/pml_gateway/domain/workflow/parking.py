"""A run that stands at calls, or before a layer, which a person must agree to (B7, B8, F4)."""

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
    """The calls that a run waits at, in their order."""
    return (parked.wanted, *parked.beside)


def unaskable(workflow: Workflow, parked: Parked) -> str | None:
    """Why nobody can be asked about what a run waits for, or None."""
    fact = parked.fact
    if workflow.grant is None or workflow.grant.digest() != fact.grant_digest:
        return "the run stands under a grant that is not its workflow's"
    if fact.wanted.layer is not None:
        is_known = layers.is_checkpoint(workflow, fact.wanted)
        name = layers.name_of(workflow, fact.wanted)
        return None if is_known else f"nobody wanted to be asked before {name}"
    for call, asked in zip_longest(wanted_calls(fact), parked.asked):
        if call is None or asked is None:
            tool = call.tool if call else "a tool"
            return f"{tool} is not there: no server lists it"
        if asked.verdict == "deny":
            return f"the policy forbids this call of {call.tool}: {asked.reason}"
    return None


def denied_calls(parked: WorkflowParked | None, verdicts: Verdicts) -> str | None:
    """Why the policy that holds now forbids a call that a run waits at, or None."""
    for call in wanted_calls(parked) if parked and parked.wanted.layer is None else ():
        said = verdicts.on(call.tool, call.args, is_all=True)
        if said is not None and said[0] == "deny":
            return f"{call.tool}: {said[1]}"
    return None


def as_asked(parked: Parked) -> WorkflowParked:
    """What a run waits for, with the definitions that a person is asked about."""
    fact = parked.fact
    if fact.wanted.layer is not None:
        return fact
    wanted, *beside = (
        call.model_copy(update={"definition_hash": asked.definition_hash if asked else ""})
        for call, asked in zip(wanted_calls(fact), parked.asked, strict=True)
    )
    return fact.model_copy(update={"wanted": wanted, "beside": tuple(beside)})


def question(workflow: Workflow, parked: WorkflowParked) -> Decision:
    """What a person is asked about a parked run."""
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
    """Why a person must agree, and what the run has done so far."""
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
    """What a person agrees to, in few words."""
    wanted = parked.wanted
    if wanted.layer is not None:
        return layers.name_of(workflow, wanted)
    more = f" and {len(parked.beside)} more" if parked.beside else ""
    return f"its call of {wanted.tool}{more}"


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
        arguments=previewed(wanted.args),
    )
