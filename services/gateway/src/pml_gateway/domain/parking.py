"""A run that stands at a call which a person must agree to (B7, F4)."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.decision import Decision, Policy, ToolDecision
from pml_common.contracts.error import WorkflowError
from pml_common.contracts.executor import WantedCall, WorkflowParked
from pml_common.contracts.tool import ToolDefinition
from pml_common.contracts.trace import TaskResult
from pml_gateway.domain.workflow_state import Workflow


def askable_among(
    policy: Policy,
    analysis: ExecutionAnalyzed | None,
    tools: Iterable[ToolDefinition],
    hash_of: Callable[[str], str | None],
) -> Mapping[str, str]:
    """The tools, with the hashes of their definitions, that calls known only when they run may
    reach once a person has agreed; none for a program without such calls."""
    if analysis is None or not reaches_unseen(analysis):
        return {}
    decided = {tool.tool for tool in analysis.decision.tools}
    asked = (tool.tool_id for tool in tools if _is_asked(policy, tool))
    hashes = ((tool_id, hash_of(tool_id)) for tool_id in asked if tool_id not in decided)
    return {tool_id: found for tool_id, found in hashes if found is not None}


def reaches_unseen(analysis: ExecutionAnalyzed) -> bool:
    """Whether it really makes calls that only the run can tell: its own, or those of capabilities,
    which bring tools within reach that no node calls."""
    within_reach = any(not tool.node_ids for tool in analysis.decision.tools)
    return not analysis.dry_run and (bool(analysis.dynamic_calls) or within_reach)


def _is_asked(policy: Policy, tool: ToolDefinition) -> bool:
    return policy.verdict_on(tool)[0] == "ask"


def unaskable(workflow: Workflow, parked: WorkflowParked, askable: Mapping[str, str]) -> str | None:
    """Why nobody can be asked about what a run waits for, or None."""
    wanted, name = parked.wanted, parked.wanted.tool
    if wanted.tool not in askable:
        return f"{name} is nothing that a person may allow here: it is gone, or a rule denies it"
    if askable[wanted.tool] != wanted.definition_hash:
        return f"{name} has changed since the run was begun; run the program again"
    grant = parked.grant
    if (grant.scope, grant.workflow_id) != (workflow.scope, workflow.workflow_id):
        return "the run stands under the grant of another workflow"
    return None


def question(workflow: Workflow, parked: WorkflowParked) -> Decision:
    """What a person is asked about a parked run."""
    wanted = parked.wanted
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
    lines = lines_of(workflow, parked.wanted)
    where = f" on line {' or '.join(map(str, lines))}" if lines else ""
    return (
        f"The run waits at its call of {parked.wanted.tool}{where}, which nobody could see before "
        f"it ran: ask. {done(parked.task_results)}"
    )


def lines_of(workflow: Workflow, wanted: WantedCall) -> Sequence[int]:
    """The author's lines on which the wanted call may stand: its own, or all those of calls that
    only the run can tell."""
    if wanted.line is not None:
        return (wanted.line,)
    calls = workflow.analysis.dynamic_calls if workflow.analysis else ()
    return sorted({call.line for call in calls})


def done(calls: Sequence[TaskResult]) -> str:
    """`It has called fs:read (2 times), fs:stat.`; what nobody knows the end of is told apart."""
    ended = [call for call in calls if not _is_open(call)]
    unknown = [call for call in calls if _is_open(call)]
    told = f"It has called {_counted(ended)}." if ended else "It has called nothing."
    if unknown:
        told += f" Nobody knows how these calls ended: {_counted(unknown)}."
    return told


def _is_open(call: TaskResult) -> bool:
    return call.error is not None and call.error.kind == "outcome_unknown"


def _counted(calls: Sequence[TaskResult]) -> str:
    times = Counter(call.tool for call in calls)
    return ", ".join(f"{tool} ({n} times)" if n > 1 else tool for tool, n in times.items())


def stopped(workflow: Workflow, parked: WorkflowParked, why: str) -> WorkflowError:
    """The end of a run that nobody let go on, in the words of `why`."""
    wanted = parked.wanted
    lines = lines_of(workflow, wanted)
    return WorkflowError(
        kind="denied",
        message=f"{why}. The run had stopped there. {done(parked.task_results)}",
        node_id=wanted.node_id,
        line=lines[0] if len(lines) == 1 else None,
        column=wanted.column,
        tool=wanted.tool,
        arguments=wanted.preview,
    )
