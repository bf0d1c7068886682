"""Approval checkpoints between two layers of a DAG.

The calls of a layer begin only after all those of the layer before have ended. So at its first call
nothing is under way; and once the journal's marks show that the run went on from there, the layer
is approved for good.
"""

from collections.abc import Sequence
from itertools import pairwise

from pml_common.contracts.executor import ParkMark, RunWorkflow, WantedCall
from pml_common.contracts.tool import JsonObject, args_hash
from pml_executor.domain.parking import Parking


def hold_before_layer(
    command: RunWorkflow, marks: Sequence[ParkMark], node_id: str, tool: str, args: JsonObject
) -> None:
    """Raise Parking at the first call of a layer that is not approved yet; `tool` is `cap:<name>`
    for a call of a capability."""
    layers = (each.layer for each in command.checkpoints if node_id in each.node_ids)
    layer = next(layers, None)
    if layer is None or layer in _passed(marks):
        return
    raise Parking(
        (
            WantedCall(
                node_id=node_id,
                occurrence=0,
                tool=tool,
                definition_hash=_definition_hash(command, tool),
                args_hash=args_hash(args),
                args=args,
                layer=layer,
            ),
        )
    )


def _passed(marks: Sequence[ParkMark]) -> set[int | None]:
    """Return the layers before which the run was parked and from which it went on."""
    return {
        parked.wanted.layer
        for parked, after in pairwise(marks)
        if parked.wanted is not None and after.wanted is None
    }


def _definition_hash(command: RunWorkflow, tool: str) -> str:
    """Return the definition hash of a tool, or the code hash of a capability."""
    hashes = {f"cap:{one.name}": one.code_hash for one in command.injected} | command.grant.tools
    return hashes.get(tool, "")
