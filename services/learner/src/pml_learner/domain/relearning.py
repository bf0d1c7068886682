"""Learning again: what a capability's traces teach, recomputed in steps from its base."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pml_common.contracts.learner import ExecutionTrace
from pml_learner.domain.lesson import Experience
from pml_learner.domain.outcome import outcome_of
from pml_learner.domain.state import State, fold
from pml_learner.domain.temporal_difference import TdRule


@dataclass(frozen=True)
class StoredTrace:
    """A trace with its position, without results, and who ran it."""

    position: int
    trace: ExecutionTrace
    principal: str


@dataclass(frozen=True)
class Learned:
    """A capability's experience with the state at its base, and at the last position that a rebuild
    under way by the rules of `rebuilt_version` has reached. `is_stale`: it lacks lessons, or its
    last rebuild is not published yet."""

    experience: Experience
    base: State
    rebuilt: State | None = None
    rebuilt_position: int = 0
    rebuilt_version: int = 0
    is_stale: bool = False

    def start(self, rule: TdRule) -> tuple[State, int]:
        """Return the state and the position from which a rebuild goes on."""
        is_ours = self.rebuilt_version == rule.version
        if self.rebuilt is None or not is_ours or self.rebuilt_position < self.base_position:
            return self.base, self.base_position
        return self.rebuilt, self.rebuilt_position

    @property
    def base_position(self) -> int:
        """The last position whose lesson cannot be recomputed."""
        return self.experience.base_position


@dataclass(frozen=True)
class Step:
    """The result of one step: the learned, whether the rebuild `is_done`, and if so whether it
    `changed` anything; `missing` traces were found to be lost."""

    learned: Learned
    is_done: bool
    changed: bool = False
    missing: int = 0


def rebuilt(learned: Learned, traces: Sequence[StoredTrace], rule: TdRule, limit: int) -> Step:
    """Go on with a rebuild by the next traces, at most `limit`; fewer are all that there are.

    Where traces are lost, what was learned from them stays as it is, and becomes the base.
    """
    before = learned.experience
    state, at = learned.start(rule)
    for each in traces:
        state = fold(state, outcome_of(each.trace, each.principal), rule)
        at = each.position
    if len(traces) >= limit and at < before.position:
        way = replace(learned, rebuilt=state, rebuilt_position=at, rebuilt_version=rule.version)
        return Step(way, is_done=False)
    missing = before.position - state.counts.runs
    after = replace(before, state=state, rule_version=rule.version)
    if missing:
        kept = _whole(before.state, state, before.position)
        after = replace(after, state=kept, base_position=before.position, new_base=kept)
    changed = after.state != before.state
    after = replace(after, rebuilds=before.rebuilds + int(changed))
    base = learned.base if after.new_base is None else after.new_base
    is_stale = changed or learned.is_stale
    return Step(Learned(after, base, is_stale=is_stale), True, changed, missing)


def folded_away(
    learned: Learned, traces: Sequence[StoredTrace], rule: TdRule, up_to: int
) -> Learned:
    """Move the base to `up_to`, over the traces after it that are left until there: they may be
    deleted then."""
    state = learned.base
    for each in traces:
        state = fold(state, outcome_of(each.trace, each.principal), rule)
    base = _at(state, up_to)
    after = replace(learned.experience, base_position=up_to, new_base=base)
    if up_to == after.position:
        after = replace(after, state=base, rule_version=rule.version)
    return replace(learned, experience=after, base=base)


def _whole(before: State, folded: State, position: int) -> State:
    """Return the state that has the lessons of all traces, or the one with more of them."""
    best = before if before.counts.runs >= folded.counts.runs else folded
    return _at(best, position)


def _at(state: State, position: int) -> State:
    """Count lost traces as runs: the counts say the position."""
    return replace(state, counts=state.counts._replace(runs=position))
