"""Builders of structures from a short notation, and of appends."""

import hashlib
from pathlib import Path
from typing import TypeVar
from uuid import UUID, uuid4

from pml_common.bus import codec, names
from pml_common.bus.codec import Envelope
from pml_common.bus.identity import SIGNATURE, all_services_identity, signed_content
from pml_common.contracts.base import Message
from pml_common.contracts.capability import CapabilityIdentity
from pml_common.contracts.catalog import MessageType, type_of
from pml_common.contracts.executor import JournalAppend, RunFinished
from pml_common.contracts.scope import Scope
from pml_common.contracts.structure import (
    DecisionNode,
    Edge,
    EdgeType,
    ForkNode,
    JoinNode,
    LoopNode,
    Node,
    StaticStructure,
    TaskNode,
)

A = TypeVar("A", bound=JournalAppend)
M = TypeVar("M", bound=Message)
EXAMPLES = Path(__file__).parents[2] / "examples"


def example(of: MessageType[M]) -> M:
    """Return the example of a message type."""
    name = f"{names.prefix_of(of).removeprefix('pml.')}.json"
    return of.model.model_validate_json((EXAMPLES / name).read_bytes())


def node(node_id: str) -> Node:
    """Build a node of the kind given by its id's letter; `d1=x` a decision on x, `l1=while` a loop
    of this kind."""
    node_id, _, condition = node_id.partition("=")
    match node_id[0]:
        case "d":
            return DecisionNode(id=node_id, line=1, column=1, condition=condition or "x")
        case "f":
            return ForkNode(id=node_id, line=1, column=1)
        case "j":
            return JoinNode(id=node_id, line=1, column=1)
        case "l":
            kind = condition or "for-of"
            return LoopNode(id=node_id, line=1, column=1, kind=kind, over="xs")
        case _:
            return TaskNode(id=node_id, line=1, column=1, tool="t:t")


def edge(way: str) -> Edge:
    """Build an edge: `a>b`, `a>b:true`, `l>b*` into a loop's body, `a~b` for data."""
    kind: EdgeType = "provides" if "~" in way else "loop_body" if way.endswith("*") else "sequence"
    start, _, rest = way.replace("~", ">").rstrip("*").partition(">")
    end, _, outcome = rest.partition(":")
    kind = "conditional" if outcome else kind
    return Edge(from_=start, to=end, type=kind, outcome=outcome or None)


def structure(nodes: str, ways: str = "") -> StaticStructure:
    """Build a structure: `structure("n1 d1 n2", "n1>d1 d1>n2:true")`."""
    return StaticStructure(
        nodes=tuple(map(node, nodes.split())), edges=tuple(map(edge, ways.split()))
    )


def after(previous: int, append: A) -> A:
    """Return the append as the one that follows the event with this sequence."""
    return append.model_copy(update={"previous": previous})


def appended_bytes(journal: JournalAppend, data: bytes, payload: str | None = None) -> Envelope:
    """Build an append with any bytes, signed and behind its fence as `journal` would be."""
    entry = type_of(journal)
    subject, message_id = names.subject_of(entry, journal.scope, journal.entity), uuid4().hex
    digest = payload or hashlib.sha256(data).hexdigest()
    headers = {
        codec.MSG_ID: message_id,
        codec.EXPECTED_LAST: str(journal.previous),
        codec.EXPECTED_ON: names.entity_filter(journal.scope, journal.entity, entry.owner),
        SIGNATURE: all_services_identity().sign(
            entry.sender, signed_content(subject, message_id, digest)
        ),
        **({codec.PAYLOAD: payload} if payload else {}),
    }
    return Envelope(subject, data, headers)


def run_finished(scope: Scope, workflow_id: UUID) -> RunFinished:
    """Build the end of a run that did nothing."""
    return RunFinished(
        scope=scope,
        event_id=uuid4(),
        workflow_id=workflow_id,
        principal="agent-7",
        capability=CapabilityIdentity(capability_id=workflow_id, code_hash="h"),
        success=True,
        trace_id=workflow_id,
        started_at=0.0,
        duration_ms=1.0,
    )
