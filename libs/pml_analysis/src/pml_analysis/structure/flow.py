"""Control flow as data: the possible orders of everything that makes nodes.

`at` is the index of the syntax that makes the node; the node itself depends on the instance. A
construct that gets its own kind of node becomes a class here, a case in `control_flow.py` that
builds it and one in `edges.py` that builds its edges.
"""

from dataclasses import dataclass
from typing import Literal

JumpKind = Literal["return", "throw", "break", "continue"]


@dataclass(frozen=True, slots=True)
class Step:
    """A call."""

    at: int


@dataclass(frozen=True, slots=True)
class Sequence:
    """Parts one after the other."""

    parts: "tuple[Flow, ...]" = ()


@dataclass(frozen=True, slots=True)
class Branch:
    """A decision between two paths."""

    at: int
    condition: "Flow"
    if_true: "Flow"
    if_false: "Flow"


@dataclass(frozen=True, slots=True)
class Maybe:
    """A part that may not run: a default value."""

    part: "Flow"


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop: `head` runs before each test, then `body`, `tail`.

    `labels` are those that `continue` may name; an endless one is left by jumps only.
    """

    at: int
    head: "Flow"
    body: "Flow"
    tail: "Flow"
    labels: tuple[str, ...] = ()
    is_endless: bool = False


@dataclass(frozen=True, slots=True)
class Switch:
    """One case after the subject, by outcome, and the cases that follow it until a break."""

    at: int
    subject: "Flow"
    cases: "tuple[tuple[str, Flow], ...]"
    has_default: bool


@dataclass(frozen=True, slots=True)
class Attempt:
    """try, catch, finally; `at` where the outcome of the try is a decision."""

    at: int | None
    body: "Flow"
    handler: "Flow | None"
    finalizer: "Flow | None"


@dataclass(frozen=True, slots=True)
class Parallel:
    """Parts side by side; a repeated one runs once for each of some items, if there are any.
    `first_ends`: the continuation waits for one of them only; `settles`: also for failed ones."""

    at: int
    parts: "tuple[Flow, ...]"
    is_repeated: bool
    first_ends: bool = False
    settles: bool = False


@dataclass(frozen=True, slots=True)
class Rescue:
    """A promise, and the callbacks that run when it fails, or also then; unless it `goes_on` after
    them, it still fails."""

    promise: "Flow"
    callbacks: "Flow"
    goes_on: bool


@dataclass(frozen=True, slots=True)
class Routine:
    """The body of a function: no jump but a throw leaves it. Not `certain`: whether and when it
    runs is unknown."""

    body: "Flow"
    certain: bool = False


@dataclass(frozen=True, slots=True)
class Enter:
    """Entry of a local function."""

    at: int
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Labelled:
    """A statement that `break label` leaves."""

    label: str
    body: "Flow"


@dataclass(frozen=True, slots=True)
class Jump:
    """A jump: the following part is not reached from here."""

    kind: JumpKind
    label: str | None = None


Flow = (
    Step
    | Sequence
    | Branch
    | Maybe
    | Loop
    | Switch
    | Attempt
    | Parallel
    | Rescue
    | Routine
    | Enter
    | Labelled
    | Jump
)
LEAVES = (Step, Enter, Jump)
"""Flows without parts."""

NOTHING = Sequence()


def in_order(*parts: Flow) -> Flow:
    """Join parts to one flow, flattened where possible."""
    flat: list[Flow] = []
    for part in parts:
        if isinstance(part, Sequence):
            flat.extend(part.parts)
        else:
            flat.append(part)
    return flat[0] if len(flat) == 1 else Sequence(tuple(flat)) if flat else NOTHING


def maybe(part: Flow) -> Flow:
    """Mark the part as one that may not run."""
    return part if part == NOTHING else Maybe(part)
