"""The progress of a run: which of its program's calls it has reached."""

from collections.abc import Iterator, Mapping
from typing import Final

from pml_common.contracts.base import Message
from pml_common.contracts.executor import JournalAppend
from pml_common.contracts.structure import CapabilityNode, TaskNode
from pml_gateway.domain.workflow.workflow_state import Workflow

_LEAST: Final = 1e-6
"""Least relative difference of two values."""


def progress_value(done: int, beats: int) -> float:
    """Return a number that grows with the calls reached, and with each of the `beats` reported
    since the last of them; it stays below the number of calls reached."""
    waited = 0.5 * (1 - 1 / (beats + 1))
    return max(0.0, done - 0.5) + waited


def next_value(said: float, wanted: float) -> float:
    """Return a number greater than the one `said` last: the one `wanted`, where it is that."""
    return wanted if wanted > said else said + max(1.0, abs(said)) * _LEAST


def calls_of(workflow: Workflow) -> Mapping[str, str]:
    """Return the program's own calls: by node id the tool, or the capability as `cap:<name>`."""
    nodes = workflow.analysis.structure.nodes if workflow.analysis else ()
    return {
        node.id: node.tool if isinstance(node, TaskNode) else f"cap:{node.name}"
        for node in nodes
        if isinstance(node, TaskNode | CapabilityNode)
    }


def reached_in(message: Message) -> Iterator[str]:
    """Yield the ids of the nodes that an append of a journal tells of."""
    if isinstance(message, JournalAppend):
        yield from (entry.node_id for entry in message.entries if entry.node_id is not None)
