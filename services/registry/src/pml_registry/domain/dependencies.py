"""Dependencies between capabilities: what may be added, and which relations follow from tools and
intents."""

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from pml_common.contracts.dependencies import DependencyType, EdgeSource
from pml_common.contracts.structure import CapabilityNode, StaticStructure
from pml_registry.domain.edge_counts import Share, ShownBy
from pml_registry.domain.tool_catalog import OBSERVED_FROM

STATED_CONFIDENCE: Final = 0.5
"""Confidence in a relation that no run has shown."""

SHARED_FROM: Final = 0.5
"""Share of another's tools from which both are taken to be used in sequence."""

ALIKE_ABOVE: Final = 0.9
"""Cosine of two intents above which their capabilities are alternatives."""

MOST_RELATED: Final = 20
"""Relations that a rule gives to one capability at most, the strongest."""

_ACYCLIC: Final[Collection[DependencyType]] = ("contains", "dependency")


@dataclass(frozen=True)
class Need:
    """A `contains` or `dependency` relation."""

    caller: UUID
    called: UUID
    source: EdgeSource


@dataclass(frozen=True)
class NewDependency:
    """A dependency to add."""

    from_: UUID
    to: UUID
    type: DependencyType
    source: EdgeSource

    def shown_by(self, at: datetime) -> ShownBy:
        """Return what its source stands for: an observed one, for OBSERVED_FROM runs."""
        base = "template" if self.source == "template" else "inferred"
        if self.source != "observed":
            return ShownBy(self.source, last_shown=at, base=base, base_confidence=STATED_CONFIDENCE)
        shares = (Share(0, OBSERVED_FROM, 0, 0),)
        return ShownBy("observed", OBSERVED_FROM, shares, at, base, STATED_CONFIDENCE)


class CyclicTemplate(Exception):
    """A template would close a cycle of templates."""

    def __init__(self, cycle: Sequence[UUID]) -> None:
        super().__init__("the templates would form a cycle")
        self.cycle = cycle


def cycle_closed(caller: UUID, called: UUID, needs: Iterable[Need]) -> Sequence[UUID]:
    """Return the shortest cycle that a relation closes with others, from the caller back to it;
    empty if it closes none."""
    following: dict[UUID, list[UUID]] = {}
    for need in needs:
        following.setdefault(need.caller, []).append(need.called)
    came_from: dict[UUID, UUID] = {called: caller}
    waiting = deque([called])
    while waiting:
        reached = waiting.popleft()
        if reached == caller:
            break
        for each in following.get(reached, ()):
            if each not in came_from:
                came_from[each] = reached
                waiting.append(each)
    if caller not in came_from:
        return ()
    cycle = [caller]
    while len(cycle) == 1 or cycle[-1] != caller:
        cycle.append(came_from[cycle[-1]])
    return cycle[::-1]


def admit_dependency(new: NewDependency, needs: Sequence[Need]) -> Sequence[UUID]:
    """Return the cycle that a new dependency closes, which is to be warned of; empty if none.

    Raises CyclicTemplate for a template that would close a cycle of templates.
    """
    if new.type not in _ACYCLIC:
        return ()
    if new.source == "template":
        templates = [need for need in needs if need.source == "template"]
        if cycle := cycle_closed(new.from_, new.to, templates):
            raise CyclicTemplate(cycle)
    return cycle_closed(new.from_, new.to, needs)


def shown_cycle(cycle: Iterable[UUID], names: Mapping[UUID, str]) -> str:
    """Render a cycle: `fs:a → fs:b → fs:a`."""
    return " → ".join(names.get(each, str(each)) for each in cycle)


def direct_calls(structure: StaticStructure) -> Sequence[UUID]:
    """Return the capabilities that a program itself calls, each once."""
    called = (
        UUID(node.capability_id)
        for node in structure.nodes
        if isinstance(node, CapabilityNode) and node.capability_id is not None
    )
    return tuple(dict.fromkeys(called))


@dataclass(frozen=True)
class Peer:
    """A capability as the rules compare it."""

    behaviour: UUID
    intent: str
    tools: frozenset[str]
    listed: bool = True


@dataclass(frozen=True)
class Related:
    """A relation that a rule gives a capability to another."""

    to: UUID
    type: DependencyType
    confidence: float


def sharing(one: Peer, others: Iterable[Peer]) -> Sequence[Related]:
    """Return `sequence` relations to the capabilities of whose tools one uses half or more: the
    share is the confidence."""
    found = [
        Related(other.behaviour, "sequence", len(one.tools & other.tools) / len(other.tools))
        for other in others
        if other.tools and len(one.tools & other.tools) >= SHARED_FROM * len(other.tools)
    ]
    return _strongest(found)


def may_be_alternative(one: Peer, other: Peer) -> bool:
    """Whether two capabilities are alternatives if their intents are alike."""
    distinct = one.behaviour != other.behaviour and one.tools != other.tools
    return distinct and bool(one.intent and other.intent)


def alternatives(similar: Iterable[tuple[Peer, float]]) -> Sequence[Related]:
    """Return `alternative` relations to the peers whose intent is alike; the cosine is the
    confidence."""
    found = [
        Related(other.behaviour, "alternative", min(1.0, cosine))
        for other, cosine in similar
        if cosine > ALIKE_ABOVE
    ]
    return _strongest(found)


def _strongest(found: Iterable[Related]) -> Sequence[Related]:
    return sorted(found, key=lambda each: (-each.confidence, each.to))[:MOST_RELATED]
