"""Edges that runs show: counted within bounds, and fading while no run shows them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, Literal
from uuid import UUID

from pml_common.contracts.dependencies import EdgeSource
from pml_common.contracts.learner import EdgesObserved
from pml_common.contracts.scope import Scope
from pml_registry.domain.tool_catalog import OBSERVED_FROM, is_tool_id

HALF_LIFE: Final = timedelta(days=30)
"""Time without a run that shows an edge after which its strength is half."""

MOST_AN_HOUR: Final = 5
"""Runs of one cohort that count for an edge in an hour of the clock."""

MOST_OF_A_COHORT: Final = 20.0
"""Strength that one cohort gives to an edge at most."""

_PROMOTED_FROM: Final = OBSERVED_FROM - 0.5
"""Strength that makes an edge observed: three runs, also some days apart."""

_SINKS_BELOW: Final = OBSERVED_FROM / 2
"""Strength below which it is observed no longer: three runs, a half-life ago."""

_FORGOTTEN_BELOW: Final = 1 / 16
"""Strength below which an edge that only runs showed goes: one run, four half-lives ago."""

_NEVER: Final = datetime.fromtimestamp(0, UTC)

ShownType = Literal["contains", "sequence"]
EdgeKey = tuple[Scope, str, str, ShownType]
"""Scope, ends and type; an end is the id of a tool or of a capability."""


@dataclass(frozen=True)
class ShownEdge:
    """An edge of a message: shown by so many runs of one cohort."""

    message_id: UUID
    key: EdgeKey
    cohort: int
    runs: int

    @property
    def capabilities(self) -> Sequence[UUID]:
        """Those at its ends."""
        return [UUID(end) for end in self.key[1:3] if ":" not in end]

    def counted_by(self, consumer: str) -> str:
        """Return the consumer under which its message is remembered. Edges of capabilities are
        remembered apart: those between tools may be counted before the capabilities exist."""
        return f"{consumer}/calls" if self.capabilities else consumer


def shown_edges(observed: Iterable[EdgesObserved]) -> Sequence[ShownEdge]:
    """Return the edges of each message between two different nodes with valid ids, each once. No
    edge is shown by more runs than the message is of."""
    shown: list[ShownEdge] = []
    for each in observed:
        counts: dict[EdgeKey, int] = {}
        for from_, to, type_, count in _edges(each):
            if from_ != to and _is_node(from_) and _is_node(to):
                key = (each.scope, from_, to, type_)
                counts[key] = min(each.runs, counts.get(key, 0) + count)
        shown += [
            ShownEdge(each.event_id, key, each.cohort, runs)
            for key, runs in sorted(counts.items(), key=lambda item: item[0][1:])
        ]
    return shown


def _edges(observed: EdgesObserved) -> Iterable[tuple[str, str, ShownType, int]]:
    for edge in observed.edges:
        if ":" in edge.from_tool and ":" in edge.to_tool:
            yield edge.from_tool, edge.to_tool, edge.type, edge.count
    for call in observed.calls:
        ends = str(call.from_capability_id), str(call.to_capability_id)
        yield *ends, "contains", call.count
    for each in observed.relations:
        if ":" not in each.from_ or (":" not in each.to and each.type == "sequence"):
            yield each.from_, each.to, each.type, each.count


@lru_cache(maxsize=4096)
def _is_node(end: str) -> bool:
    if ":" in end:
        return is_tool_id(end)
    try:
        return str(UUID(end)) == end
    except ValueError:
        return False


@dataclass(frozen=True)
class Share:
    """The part of one cohort in an edge: its strength when any run showed the edge last, and the
    runs counted in the hour (number since 1970) of its own last one."""

    cohort: int
    strength: float
    hour: int
    in_hour: int


@dataclass(frozen=True)
class ShownBy:
    """The runs that showed an edge, and what it is without them: `base` is its source, None where
    runs alone show it, and `base_confidence` its confidence."""

    source: EdgeSource
    count: int = 0
    shares: tuple[Share, ...] = ()
    last_shown: datetime = _NEVER
    base: Literal["template", "inferred"] | None = None
    base_confidence: float = 0.0

    def strength(self, at: datetime) -> float:
        """Return the runs that showed it, each halved with every HALF_LIFE since the last."""
        return sum(share.strength for share in self.shares) * self._faded(at)

    def confidence(self, at: datetime) -> float:
        """Return s / (s + 1) of its strength s, at least the confidence that it has without
        runs."""
        strength = self.strength(at)
        return max(self.base_confidence, strength / (strength + 1))

    def at(self, at: datetime) -> "ShownBy | None":
        """Return it as it is at a later time, when it may have sunk back to its source without
        runs; None: nothing shows it any longer. A repetition changes nothing."""
        strength = self.strength(at)
        if self.base is None and strength < _FORGOTTEN_BELOW:
            return None
        return replace(self, source=self._source(strength))

    def plus(self, cohort: int, runs: int, at: datetime) -> "ShownBy":
        """Return it with runs of a cohort added, within its bounds."""
        at = max(at, self.last_shown)
        hour, faded = int(at.timestamp() // 3600), self._faded(at)
        shares = {
            each.cohort: Share(each.cohort, each.strength * faded, each.hour, each.in_hour)
            for each in self.shares
        }
        own = shares.get(cohort, Share(cohort, 0.0, hour, 0))
        before = own.in_hour if own.hour == hour else 0
        counted = min(runs, MOST_AN_HOUR - before)
        strength = min(MOST_OF_A_COHORT, own.strength + counted)
        shares[cohort] = Share(cohort, strength, hour, before + counted)
        return ShownBy(
            self._source(self.strength(at), sum(each.strength for each in shares.values())),
            self.count + counted,
            tuple(shares[each] for each in sorted(shares)),
            at,
            self.base,
            self.base_confidence,
        )

    def _faded(self, at: datetime) -> float:
        return 0.5 ** (max(timedelta(0), at - self.last_shown) / HALF_LIFE)

    def _source(self, strength: float, grown: float = 0.0) -> EdgeSource:
        """Return the source at a strength, which runs have let grow."""
        stays = self.source == "observed" and strength >= _SINKS_BELOW
        if stays or max(strength, grown) >= _PROMOTED_FROM:
            return "observed"
        return self.base or "inferred"


def counted(
    before: Mapping[EdgeKey, ShownBy], shown: Iterable[ShownEdge], at: datetime
) -> Mapping[EdgeKey, ShownBy]:
    """Add the runs that showed edges to those before."""
    after, runs = dict(before), Counter[tuple[EdgeKey, int]]()
    for each in shown:
        runs[each.key, each.cohort] += each.runs
    for (key, cohort), added in runs.items():
        after[key] = after[key].plus(cohort, added, at)
    return after


def turned(
    before: Mapping[EdgeKey, ShownBy], after: Mapping[EdgeKey, ShownBy]
) -> Sequence[EdgeKey]:
    """Return the edges that have another source than before."""
    return [key for key, shown in after.items() if shown.source != before[key].source]
