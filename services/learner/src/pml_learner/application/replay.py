"""Looks at past runs again while no new ones come."""

from collections.abc import Callable
from dataclasses import dataclass, field

from pml_learner.domain.lesson import ScopedCapability
from pml_learner.domain.replay import Dice, ReplayBuffer, ReplayRule, RunKey, refreshed
from pml_learner.ports import TraceStore

BUFFER = 1000
"""The newest runs of a capability, among which some are chosen."""
_CHUNK = 50


@dataclass
class Replay:
    """Refreshes the priorities of chosen runs, capability by capability. The work may be done
    twice, or be lost: nothing but priorities changes, and they follow from the present values."""

    traces: TraceStore
    rule: ReplayRule
    dice: Dice
    is_pause: Callable[[], bool]
    _last: ScopedCapability | None = field(default=None)

    async def refresh_some(self, at_most: int) -> int:
        """Refresh the priorities of so many runs of the next capability, unless new runs come, and
        return their number. Raises StorageUnavailable."""
        if not self.is_pause():
            return 0
        past = await self.traces.past(self._last, BUFFER)
        self._last = None if past is None else past.capability
        if past is None:
            return 0
        buffer = ReplayBuffer[RunKey](BUFFER, self.rule)
        for key, run in past.runs.items():
            buffer.put(key, run.priority)
        chosen = list(dict.fromkeys(each.key for each in buffer.sample(at_most, self.dice)))
        done = 0
        for start in range(0, len(chosen), _CHUNK):
            if not self.is_pause():
                break
            some = chosen[start : start + _CHUNK]
            fresh = {key: refreshed(past.runs[key], past.learning) for key in some}
            await self.traces.refresh(past.capability, fresh)
            done += len(some)
        return done
