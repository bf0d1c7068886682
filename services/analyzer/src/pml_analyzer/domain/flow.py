"""Control flow as data: what a program may do in which order, reduced to what makes nodes.

A construct that gets its own kind of node becomes a class here, a case in `control_flow.py` that
builds it and one in `edges.py` that draws it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

JumpKind = Literal["return", "throw", "break", "continue"]


@dataclass(frozen=True, slots=True)
class Step:
    """A task is done."""

    node_id: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """One part after the other."""

    parts: "tuple[Flow, ...]" = ()


@dataclass(frozen=True, slots=True)
class Branch:
    """A decision between two ways."""

    node_id: str
    condition: "Flow"
    if_true: "Flow"
    if_false: "Flow"


@dataclass(frozen=True, slots=True)
class Perhaps:
    """A part that may not run: the right side of `&&`."""

    part: "Flow"


@dataclass(frozen=True, slots=True)
class Repeat:
    """A loop. `head` runs before each round, and `body` and `tail` in it."""

    head: "Flow"
    body: "Flow"
    tail: "Flow"
    at_least_once: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """A switch: one case after the subject, and those that follow it until a break."""

    subject: "Flow"
    cases: "tuple[Flow, ...]"
    exhaustive: bool


@dataclass(frozen=True, slots=True)
class Attempt:
    """try, catch, finally."""

    body: "Flow"
    handler: "Flow | None"
    finalizer: "Flow | None"


@dataclass(frozen=True, slots=True)
class Routine:
    """The body of a function, where it is written; it may not run, and no jump leaves it."""

    body: "Flow"


@dataclass(frozen=True, slots=True)
class Labelled:
    """A statement that `break label` leaves."""

    label: str
    body: "Flow"


@dataclass(frozen=True, slots=True)
class Jump:
    """What follows is not reached from here."""

    kind: JumpKind
    label: str | None = None


Flow = Step | Sequence | Branch | Perhaps | Repeat | Choice | Attempt | Routine | Labelled | Jump
NOTHING = Sequence()


def in_order(*parts: Flow) -> Flow:
    """The parts as one flow, without a level of its own where none is needed."""
    flat: list[Flow] = []
    for part in parts:
        if isinstance(part, Sequence):
            flat.extend(part.parts)
        else:
            flat.append(part)
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat)) if flat else NOTHING


def nodes_in(flow: Flow) -> Iterator[Step | Branch]:
    """Every part of a flow that makes a node, in program order."""
    waiting: list[Flow] = [flow]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Step | Branch):
            yield part
        waiting.extend(reversed(parts_of(part)))


def parts_of(flow: Flow) -> tuple[Flow, ...]:
    """The flows that a flow is made of."""
    match flow:
        case Sequence(parts=parts):
            return parts
        case Branch():
            return (flow.condition, flow.if_true, flow.if_false)
        case Perhaps(part=part):
            return (part,)
        case Repeat():
            return (flow.head, flow.body, flow.tail)
        case Choice():
            return (flow.subject, *flow.cases)
        case Attempt():
            return (flow.body, flow.handler or NOTHING, flow.finalizer or NOTHING)
        case Routine(body=body) | Labelled(body=body):
            return (body,)
        case _:
            return ()
