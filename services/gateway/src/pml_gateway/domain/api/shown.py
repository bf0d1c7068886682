"""What an approver is shown: all calls of a program, those of a layer, or those a run waits at."""

from pml_common.contracts.executor import WantedCall
from pml_gateway.domain.api.shown_arguments import Arguments
from pml_gateway.domain.api.shown_calls import (
    ROOM,
    Shown,
    ShownCall,
    calls_shown,
    program_shown,
)
from pml_gateway.domain.api.shown_text import Texts
from pml_gateway.domain.workflow import layers, parking
from pml_gateway.domain.workflow.workflow_state import Approval, Workflow


def shown_of(workflow: Workflow, approval: Approval, *, whole: bool = False) -> Shown:
    """What an approval is about; `whole` with long texts as they are, as far as there is room."""
    analysis, parked, args = workflow.analysis, approval.parked, workflow.requested.args
    if analysis is None:
        return Shown(())
    if parked is None:
        return program_shown(analysis, args, whole=whole)
    texts = Texts(ROOM if whole else 0)
    layer = parked.wanted.layer
    if layer is not None:
        coming = layers.coming(workflow, analysis, parked, layer)
        return Shown(calls_shown(analysis, args, coming, texts))
    arguments = Arguments(texts)
    waiting = parking.wanted_calls(parked)
    return Shown(tuple(_waiting(workflow, wanted, arguments) for wanted in waiting))


def _waiting(workflow: Workflow, wanted: WantedCall, arguments: Arguments) -> ShownCall:
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
