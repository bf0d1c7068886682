"""How many processes a pool starts, and how many it ends to make room."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Places:
    """Where a pool's processes are: `spare` wait for anybody, `idle` for their own scope, `busy`
    have a run or come from one, `ending` are being ended. There are `most`; `spares` should wait,
    and a process is wanted for each of `waiting`."""

    most: int
    spares: int
    waiting: int = 0
    spare: int = 0
    starting: int = 0
    idle: int = 0
    busy: int = 0
    ending: int = 0

    @property
    def starts(self) -> int:
        """What is wanted and there is room for."""
        return max(0, min(self._short, self.most - self._taken))

    @property
    def pressing(self) -> int:
        """Places that somebody waits for and only an idle process could leave."""
        return max(0, self.waiting - self.spare - self.starting - self.starts - self.ending)

    @property
    def missing(self) -> int:
        """Places for spares that only an idle process could leave."""
        return max(0, self._short - self.starts - self.ending) - self.pressing

    @property
    def _short(self) -> int:
        return self.spares + self.waiting - self.spare - self.starting

    @property
    def _taken(self) -> int:
        return self.spare + self.starting + self.idle + self.busy + self.ending
