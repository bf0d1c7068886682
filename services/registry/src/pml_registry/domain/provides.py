"""Provides edges of a tool catalog, kept up to date with its changes."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pml_common.contracts.provides import ProvidesEdge
from pml_common.contracts.structure import Coverage
from pml_common.contracts.tool import ToolDefinition
from pml_common.provides.tool_edges import create_provides_edges

MOST_TOOLS: Final = 5000
"""Tools of a scope that are compared, the first by id."""

MOST_CONSUMERS: Final = 64
"""Edges that are kept of one tool: the best covered, of its own server first."""

MOST_AT_ONCE: Final = 100
"""Changed tools that are compared with all others in one transaction."""

_RANKS: Final[Mapping[Coverage, int]] = {"strict": 0, "partial": 1, "optional": 2}

Ends = tuple[str, str]
"""The ids of provider and consumer."""


@dataclass(frozen=True)
class ProvidesChange:
    """Edges to store, those to remove, and the tools whose edges are up to date with it.
    `left_out`: the number of tools that are not compared, as the scope has too many."""

    saved: tuple[ProvidesEdge, ...]
    removed: tuple[Ends, ...]
    done: tuple[str, ...]
    left_out: int = 0

    @property
    def visible(self) -> bool:
        """Whether any edge changes."""
        return bool(self.saved or self.removed)


def provides_change(
    tools: Sequence[ToolDefinition], stale: Sequence[str], stored: Mapping[Ends, Coverage]
) -> ProvidesChange:
    """Compare stale tools with all others; `tools` is the whole catalog, by id.

    A provider that had its most edges and loses one is compared anew, as another may take the
    place.
    """
    compared = tools[:MOST_TOOLS]
    known = {tool.tool_id for tool in compared}
    done = tuple(stale[:MOST_AT_ONCE])
    changed = known & set(done)
    gone = {ends for ends in stored if not known.issuperset(ends) or changed & {*ends}}
    changed |= {end for end in _full(stored) if end in known and any(end == e[0] for e in gone)}
    every: dict[Ends, Coverage] = {
        ends: rank for ends, rank in stored.items() if not _touches(ends, changed, gone)
    }
    found = {(edge.from_, edge.to): edge for edge in create_provides_edges(compared, changed)}
    every.update((ends, edge.coverage) for ends, edge in found.items())
    best = _best(every)
    return ProvidesChange(
        saved=tuple(edge for ends, edge in found.items() if ends in best),
        removed=tuple(sorted(stored.keys() - best)),
        done=done,
        left_out=len(tools) - len(compared),
    )


def _touches(ends: Ends, changed: Collection[str], gone: Collection[Ends]) -> bool:
    return ends in gone or any(end in changed for end in ends)


def _full(stored: Iterable[Ends]) -> Iterable[str]:
    counts: dict[str, int] = {}
    for provider, _ in stored:
        counts[provider] = counts.get(provider, 0) + 1
    return [provider for provider, count in counts.items() if count >= MOST_CONSUMERS]


def _best(every: Mapping[Ends, Coverage]) -> set[Ends]:
    of_provider: dict[str, list[Ends]] = {}
    for ends in sorted(every, key=lambda ends: (_RANKS[every[ends]], _is_abroad(ends), ends)):
        of_provider.setdefault(ends[0], []).append(ends)
    return {ends for found in of_provider.values() for ends in found[:MOST_CONSUMERS]}


def _is_abroad(ends: Ends) -> bool:
    provider, consumer = (end.partition(":")[0] for end in ends)
    return provider != consumer
