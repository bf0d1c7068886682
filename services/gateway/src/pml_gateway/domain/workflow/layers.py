"""Approvals between the layers of a DAG.

The program of a DAG makes its calls in the order of its layers, each at one place: the n-th call
site is the n-th task. A run parks between two layers if a tool of either is elevated: the policy
asks about it, or its server does not mark it read-only, and no mock answers it.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from pydantic import JsonValue

from pml_common.calls_made import calls_made
from pml_common.contracts.analyzer import ExecutionAnalyzed
from pml_common.contracts.decision import Decision, ToolDecision
from pml_common.contracts.executor import Checkpoint, WantedCall, WorkflowParked
from pml_common.contracts.structure import (
    Argument,
    ArrayArgument,
    CapabilityNode,
    LiteralArgument,
    ObjectArgument,
    ParameterArgument,
    ReferenceArgument,
    TaskNode,
)
from pml_common.contracts.tool import JsonObject
from pml_common.text.visible import visible
from pml_gateway.domain.api.api import DoneTask, LayerAsked, NextTask
from pml_gateway.domain.sources.dag_values import at, path_of
from pml_gateway.domain.workflow.preview import preview, shortened
from pml_gateway.domain.workflow.workflow_state import Workflow

_MOST_NAMED: Final = 3

Outputs = Mapping[str, JsonValue]
"""Results of calls by node id."""


class _Task(NamedTuple):
    """A task of a DAG and the node that it became."""

    id: str
    node: TaskNode | CapabilityNode

    @property
    def tool(self) -> str:
        return self.node.tool if isinstance(self.node, TaskNode) else f"cap:{self.node.name}"


def checkpoints(
    layers: Sequence[Sequence[str]], analysis: ExecutionAnalyzed
) -> tuple[Checkpoint, ...]:
    """Return the layers before which a run parks; none unless the request asked for it."""
    elevated = _elevated(analysis)
    nodes = [[task.node.id for task in layer] for layer in _placed(layers, analysis)]
    return tuple(
        Checkpoint(layer=number, node_ids=tuple(after))
        for number, (before, after) in enumerate(pairwise(nodes), 2)
        if not elevated.isdisjoint((*before, *after))
    )


def is_checkpoint(workflow: Workflow, wanted: WantedCall) -> bool:
    """Whether a run may park before the layer that it names."""
    analysis = workflow.analysis
    known = checkpoints(workflow.requested.layers, analysis) if analysis else ()
    return any(each.layer == wanted.layer and wanted.node_id in each.node_ids for each in known)


def asked(workflow: Workflow, parked: WorkflowParked | None) -> LayerAsked | None:
    """Build what a person is shown between two layers; None if the run waits for something else."""
    analysis = workflow.analysis
    number = parked.wanted.layer if parked else None
    if parked is None or analysis is None or number is None:
        return None
    layers, elevated = _placed(workflow.requested.layers, analysis), _elevated(analysis)
    outputs, args = _outputs(parked), workflow.requested.args
    return LayerAsked(
        number=number,
        of=len(layers),
        done=tuple(_done(task, outputs) for task in layers[number - 2]),
        next=tuple(
            NextTask(
                task=task.id,
                node_id=task.node.id,
                tool=task.tool,
                line=task.node.line,
                column=task.node.column,
                arguments={
                    name: _shown(given, outputs, args)
                    for name, given in task.node.arguments.items()
                },
                elevated=task.node.id in elevated,
            )
            for task in layers[number - 1]
        ),
    )


def coming(
    workflow: Workflow, analysis: ExecutionAnalyzed, parked: WorkflowParked, number: int
) -> Sequence[tuple[TaskNode | CapabilityNode, Mapping[str, Argument]]]:
    """Return the calls of a waiting layer, with their arguments as far as they are known."""
    outputs, args = _outputs(parked), workflow.requested.args
    nodes = [task.node for task in _placed(workflow.requested.layers, analysis)[number - 1]]
    return [
        (node, {name: _filled(one, outputs, args) for name, one in node.arguments.items()})
        for node in nodes
    ]


def question(workflow: Workflow, parked: WorkflowParked) -> Decision:
    """Return the decision to approve the next layer, with the verdicts on its tools."""
    layer, analysis = asked(workflow, parked), workflow.analysis
    nodes = {task.node_id for task in layer.next} if layer else set[str]()
    decided: Sequence[ToolDecision] = analysis.decision.tools if analysis else ()
    tools = tuple(one for one in decided if not nodes.isdisjoint(one.node_ids))
    return Decision(verdict="ask", reasons=(sentence(workflow, parked),), tools=tools)


def sentence(workflow: Workflow, parked: WorkflowParked) -> str:
    """Return the run's progress as a sentence: what is done, what comes next."""
    layer, calls = asked(workflow, parked), calls_made(parked.task_results)
    if layer is None:
        return calls
    done = _named([(task.task, task.tool) for task in layer.done])
    coming = _named([(task.task, task.tool) for task in layer.next])
    return (
        f"Layer {layer.number - 1} of {layer.of} is done: {done}. "
        f"Layer {layer.number} comes next: {coming}. {calls}"
    )


def name_of(workflow: Workflow, wanted: WantedCall) -> str:
    """`layer 2 of 3`."""
    return f"layer {wanted.layer} of {len(workflow.requested.layers)}"


def _placed(layers: Sequence[Sequence[str]], analysis: ExecutionAnalyzed) -> list[list[_Task]]:
    nodes = analysis.structure.nodes if layers else ()
    calls = iter(node for node in nodes if isinstance(node, TaskNode | CapabilityNode))
    return [[_Task(task, next(calls)) for task in layer] for layer in layers]


def _elevated(analysis: ExecutionAnalyzed) -> frozenset[str]:
    """Return the ids of the nodes that reach an elevated tool, or a capability that the policy
    asks about."""
    tools = [
        one.node_ids
        for one in analysis.decision.tools
        if not one.mocked and (one.verdict == "ask" or not one.read_only)
    ]
    named = [one.node_ids for one in analysis.capabilities if one.verdict == "ask"]
    return frozenset(node_id for node_ids in (*tools, *named) for node_id in node_ids)


def _outputs(parked: WorkflowParked) -> Outputs:
    return {each.node_id: each.result for each in (*parked.task_results, *parked.nested)}


def _done(task: _Task, outputs: Outputs) -> DoneTask:
    result = outputs.get(task.node.id)
    return DoneTask(task=task.id, node_id=task.node.id, tool=task.tool, preview=preview(result))


def _shown(argument: Argument, outputs: Outputs, args: JsonObject) -> Argument:
    """Return an argument as `_filled` does; a long value is cut and becomes text."""
    filled = _filled(argument, outputs, args)
    if not isinstance(filled, LiteralArgument):
        return filled
    return LiteralArgument(value=shortened(filled.value))


def _filled(argument: Argument, outputs: Outputs, args: JsonObject) -> Argument:
    """Return an argument with its value; as written if the value is not known."""
    try:
        return LiteralArgument(value=_value(argument, outputs, args))
    except LookupError:
        return argument


def _value(argument: Argument, outputs: Outputs, args: JsonObject) -> JsonValue:
    """Return the value that a call gets. Raises LookupError if it is not certain."""
    match argument:
        case LiteralArgument():
            return argument.value
        case ReferenceArgument(node_id=str() as node_id):
            path = path_of(argument.expression)
            if path is None:
                raise LookupError(argument.expression)
            return at(outputs[node_id], path)
        case ParameterArgument(parameter_name=name) if path_of(name) == ():
            return args[name]
        case ObjectArgument():
            return {key: _value(one, outputs, args) for key, one in argument.fields.items()}
        case ArrayArgument():
            return [_value(one, outputs, args) for one in argument.items]
        case _:
            raise LookupError(argument)


def _named(tasks: Sequence[tuple[str, str]]) -> str:
    """`read (fs:read), write (fs:write) and 2 more`; ids are the caller's and may hold anything."""
    named = ", ".join(f"{visible(task)} ({tool})" for task, tool in tasks[:_MOST_NAMED])
    more = len(tasks) - _MOST_NAMED
    return f"{named} and {more} more" if more > 0 else named
