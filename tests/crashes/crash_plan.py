"""What an executor is told to die of, and the diary it leaves: one file per workflow each.

A life is one handling of one command: a run that parks has at least two. All that it does to the
world has a point before and a point after and, if it is a call, one in the middle.
`append 3: after` is the point after its third append; a mark is an append that parks the run or
lets it go on.
"""

import json
import os
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

CALLS = "calls.jsonl"
"""Where the tools write down every call."""
SPARED = ""
"""No point of any life."""


@dataclass(frozen=True)
class Plan:
    """At which point each life gets the signal, the first life first; `SPARED` is none, and further
    lives are spared."""

    at: tuple[str, ...]
    signal: int


@dataclass(frozen=True)
class Line:
    """One line of a diary: at a point of a life, or (`point` is None) as it begins and ends."""

    life: int
    pid: int
    point: str | None
    what: str = ""


class Diaries:
    """The folder that executors and their examiner share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def plan(self, workflow: UUID, plan: Plan) -> None:
        """What shall happen to the lives of a workflow."""
        self._path(workflow, "plan").write_text(json.dumps(asdict(plan)), encoding="utf-8")

    def plan_of(self, workflow: UUID) -> Plan:
        """What shall happen; nothing, unless it was said."""
        path = self._path(workflow, "plan")
        if not path.exists():
            return Plan((), signal.SIGKILL)
        known = json.loads(path.read_text(encoding="utf-8"))
        return Plan(tuple(known["at"]), known["signal"])

    def plan_gateway(self, workflow: UUID, point: str) -> None:
        """Where the gateway shall die, once."""
        self._path(workflow, "gateway").write_text(point, encoding="utf-8")

    def dooms_gateway(self, workflow: UUID, point: str) -> bool:
        """Whether it shall die here; asked again, it shall not."""
        path = self._path(workflow, "gateway")
        doomed = path.exists() and path.read_text(encoding="utf-8") == point
        if doomed:
            path.unlink()
        return doomed

    def gateway_is_doomed(self, workflow: UUID) -> bool:
        """Whether it has yet to die."""
        return self._path(workflow, "gateway").exists()

    def write(self, workflow: UUID, line: Line) -> None:
        """Add a line; it is there even if the writer dies at once."""
        with self._path(workflow, "diary").open("a", encoding="utf-8") as diary:
            diary.write(json.dumps(asdict(line)) + "\n")

    def read(self, workflow: UUID) -> list[Line]:
        """All lines so far."""
        return [Line(**known) for known in _lines(self._path(workflow, "diary"))]

    def calls(self) -> Sequence[Mapping[str, object]]:
        """Every call that reached a tool: `tool` and `args`."""
        return _lines(self._folder / CALLS)

    def _path(self, workflow: UUID, kind: str) -> Path:
        return self._folder / f"{workflow}.{kind}"


class Life:
    """One handling of one command by this very process."""

    def __init__(self, diaries: Diaries, workflow: UUID) -> None:
        self._diaries = diaries
        self._workflow = workflow
        self._number = len({line.life for line in diaries.read(workflow)}) + 1
        plan = diaries.plan_of(workflow)
        self._signal = plan.signal
        self._doom = plan.at[self._number - 1] if self._number <= len(plan.at) else None
        self._done: Counter[str] = Counter()
        self._write(None, "begins")

    def does(self, what: str) -> "Deed":
        """The next thing of this kind that it does."""
        self._done[what] += 1
        return Deed(self, f"{what} {self._done[what]}")

    def comes_to(self, point: str) -> None:
        """A point; the signal of the plan, where it is this one."""
        self._write(point)
        if point == self._doom:
            os.kill(os.getpid(), self._signal)

    def is_doomed_at(self, point: str) -> bool:
        """Whether it will go no further."""
        return point == self._doom

    def ends(self, how: str) -> None:
        """The handling is over."""
        self._write(None, how)

    def _write(self, point: str | None, what: str = "") -> None:
        self._diaries.write(self._workflow, Line(self._number, os.getpid(), point, what))


@dataclass(frozen=True)
class Deed:
    """Something that a life does to the world, and its points."""

    life: Life
    name: str

    def comes_to(self, when: str) -> None:
        """`before`, `during`, `after`."""
        self.life.comes_to(f"{self.name}: {when}")

    def is_doomed(self, when: str) -> bool:
        """Whether its life will go no further."""
        return self.life.is_doomed_at(f"{self.name}: {when}")


def points(diary: Sequence[Line], life: int = 1) -> list[str]:
    """What a life came to, in order."""
    return [line.point for line in diary if line.life == life and line.point]


def kind_of(point: str) -> str:
    """`append 3: after` is a point after an append."""
    deed, when = point.split(": ")
    return f"{when} {deed.split()[0]}"


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
