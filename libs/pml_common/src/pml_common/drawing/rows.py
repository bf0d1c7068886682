"""The rows of an outline."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pml_common.contracts.structure import Node

_NOWHERE: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node; `only_on` is the one outcome of this decision that anything below follows on; `ends`
    when nothing does, though rows below may look as if it did."""

    depth: int
    node: Node
    only_on: str | None = None
    ends: bool = False


@dataclass(frozen=True, slots=True)
class WayRow:
    """A way out of the node above it: outcomes, or one of several strands; its rows are below."""

    depth: int
    label: str
    ends: bool = False


@dataclass(frozen=True, slots=True)
class GoRow:
    """The way does not lead to the next row: it goes `back` to what a loop does before it looks for
    another round, or on to what follows further below, as after a break."""

    depth: int
    node_id: str
    back: bool = False


Row = NodeRow | WayRow | GoRow


def settled(rows: Sequence[Row]) -> list[Row]:
    """Ends are told only where the rows below look as if something followed."""
    found: list[Row] = []
    follows = _NOWHERE
    """The depth that a reader who leaves a branch must get back to, to read on."""
    for row in reversed(rows):
        if isinstance(row, NodeRow):
            found.append(replace(row, ends=row.ends and follows <= row.depth))
            follows = min(follows, row.depth)
        elif isinstance(row, WayRow):
            follows = follows if follows < row.depth else _NOWHERE
            if not row.ends or follows < row.depth:
                found.append(row)
        else:
            found.append(row)
    return found[::-1]
