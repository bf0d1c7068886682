"""Calls to show to an approver: of a program, of a layer, or those at which a run is parked."""

from pml_common.contracts.executor import WantedCall
from pml_gateway.domain.api.shown_arguments import ArgumentRenderer
from pml_gateway.domain.api.shown_calls import (
    TEXT_BUDGET,
    ShownCall,
    ShownCalls,
    shown_calls_of_nodes,
    shown_calls_of_program,
)
from pml_gateway.domain.api.shown_text import TextRenderer
from pml_gateway.domain.workflow import layers, parking
from pml_gateway.domain.workflow.workflow_state import Approval, Workflow


def shown_calls_of(workflow: Workflow, approval: Approval, *, whole: bool = False) -> ShownCalls:
    """Return the calls of an approval; `whole` shows long texts whole, within a budget."""
    analysis, parked, args = workflow.analysis, approval.parked, workflow.requested.args
    if analysis is None:
        return ShownCalls(())
    if parked is None:
        return shown_calls_of_program(analysis, args, whole=whole)
    texts = TextRenderer(TEXT_BUDGET if whole else 0)
    layer = parked.wanted.layer
    if layer is not None:
        coming = layers.coming(workflow, analysis, parked, layer)
        return ShownCalls(shown_calls_of_nodes(analysis, args, coming, texts))
    arguments = ArgumentRenderer(texts)
    waiting = parking.wanted_calls(parked)
    return ShownCalls(tuple(_waiting(workflow, wanted, arguments) for wanted in waiting))


def _waiting(workflow: Workflow, wanted: WantedCall, arguments: ArgumentRenderer) -> ShownCall:
    lines = parking.lines_of(workflow, wanted)
    return ShownCall(
        node_id=wanted.node_id,
        tool=wanted.tool,
        verdict="ask",
        line=lines[0] if len(lines) == 1 else None,
        column=wanted.column,
        how_often="once",
        why=wanted.why or None,
        arguments=arguments.of_values(wanted.args),
    )
