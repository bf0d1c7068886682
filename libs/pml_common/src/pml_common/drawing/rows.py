"""The rows of an outline."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from pml_common.contracts.structure import Node

_NOWHERE: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class NodeRow:
    """A node; `only_on` is the one outcome of this decision that continues below; `ends`: nothing
    follows it, though the rows below may suggest it."""

    depth: int
    node: Node
    only_on: str | None = None
    ends: bool = False


@dataclass(frozen=True, slots=True)
class BranchRow:
    """A branch of the node above it: outcomes, or one of several strands; its rows are below."""

    depth: int
    label: str
    ends: bool = False


@dataclass(frozen=True, slots=True)
class JumpRow:
    """A jump instead of the next row: `back` to the start of a loop's round, or forward to a node
    further below, as after a break."""

    depth: int
    node_id: str
    back: bool = False


Row = NodeRow | BranchRow | JumpRow


def prune_ends(rows: Sequence[Row]) -> list[Row]:
    """Drop `ends` marks, except where the rows below suggest that something follows."""
    found: list[Row] = []
    follows = _NOWHERE
    """The depth of the next row after a branch."""
    for row in reversed(rows):
        if isinstance(row, NodeRow):
            found.append(replace(row, ends=row.ends and follows <= row.depth))
            follows = min(follows, row.depth)
        elif isinstance(row, BranchRow):
            follows = follows if follows < row.depth else _NOWHERE
            if not row.ends or follows < row.depth:
                found.append(row)
        else:
            found.append(row)
    return found[::-1]
