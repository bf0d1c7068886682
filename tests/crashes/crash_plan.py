"""Plans of crashes, and the log that executors write: one file of each per workflow.

A command run is one handling of one command: a run that parks has at least two. Each of its
external actions has a point before, a point after and, for a call, one during it. `append 3: after`
is the point after its third append. A mark is the append that resumes a parked run, `parking` and
`finish` are the last appends of a command run.
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
"""The file in which the tools log every call."""
NO_CRASH = ""
"""No point of any command run."""


@dataclass(frozen=True)
class CrashPlan:
    """The point at which each command run gets the signal, in order; none for `NO_CRASH` and for
    further command runs."""

    at: tuple[str, ...]
    signal: int


@dataclass(frozen=True)
class LogEntry:
    """One entry of a crash log: at a point of a command run, or (`point` is None) at its begin and
    end."""

    command_run: int
    pid: int
    point: str | None
    what: str = ""


class CrashLog:
    """The folder shared by executors and the suite."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def plan(self, workflow: UUID, plan: CrashPlan) -> None:
        """Store the plan of a workflow."""
        self._path(workflow, "plan").write_text(json.dumps(asdict(plan)), encoding="utf-8")

    def plan_of(self, workflow: UUID) -> CrashPlan:
        """Read the plan; an empty one by default."""
        path = self._path(workflow, "plan")
        if not path.exists():
            return CrashPlan((), signal.SIGKILL)
        known = json.loads(path.read_text(encoding="utf-8"))
        return CrashPlan(tuple(known["at"]), known["signal"])

    def plan_gateway(self, workflow: UUID, point: str) -> None:
        """Store the point at which the gateway dies, once."""
        self._path(workflow, "gateway").write_text(point, encoding="utf-8")

    def take_gateway_crash(self, workflow: UUID, point: str) -> bool:
        """Whether the gateway dies here; true only once."""
        path = self._path(workflow, "gateway")
        is_planned = path.exists() and path.read_text(encoding="utf-8") == point
        if is_planned:
            path.unlink()
        return is_planned

    def gateway_crash_pending(self, workflow: UUID) -> bool:
        """Whether the gateway has not died yet."""
        return self._path(workflow, "gateway").exists()

    def write(self, workflow: UUID, line: LogEntry) -> None:
        """Append an entry; it is stored even if the writer dies at once."""
        with self._path(workflow, "diary").open("a", encoding="utf-8") as diary:
            diary.write(json.dumps(asdict(line)) + "\n")

    def read(self, workflow: UUID) -> list[LogEntry]:
        """All entries so far."""
        return [LogEntry(**known) for known in _lines(self._path(workflow, "diary"))]

    def calls(self) -> Sequence[Mapping[str, object]]:
        """Every call that reached a tool: `tool` and `args`."""
        return _lines(self._folder / CALLS)

    def _path(self, workflow: UUID, kind: str) -> Path:
        return self._folder / f"{workflow}.{kind}"


class CommandRun:
    """One handling of one command by this process; `end` is how it ends, once it has stored
    that."""

    def __init__(self, crash_log: CrashLog, workflow: UUID) -> None:
        self._diaries = crash_log
        self._workflow = workflow
        self._number = len({line.command_run for line in crash_log.read(workflow)}) + 1
        plan = crash_log.plan_of(workflow)
        self._signal = plan.signal
        self._crash_point = plan.at[self._number - 1] if self._number <= len(plan.at) else None
        self._done: Counter[str] = Counter()
        self.end: str | None = None
        self._write(None, "begins")

    def next_action(self, what: str) -> "Action":
        """The next action of this kind."""
        self._done[what] += 1
        return Action(self, f"{what} {self._done[what]}")

    def reach(self, point: str) -> None:
        """Log a point; send the planned signal if it is the planned point."""
        self._write(point)
        if point == self._crash_point:
            os.kill(os.getpid(), self._signal)

    def will_crash_at(self, point: str) -> bool:
        """Whether it crashes at this point."""
        return point == self._crash_point

    def finish(self, how: str) -> None:
        """Log the end."""
        self._write(None, how)

    def _write(self, point: str | None, what: str = "") -> None:
        self._diaries.write(self._workflow, LogEntry(self._number, os.getpid(), point, what))


@dataclass(frozen=True)
class Action:
    """An external action of a command run, with its points."""

    command_run: CommandRun
    name: str

    def reach(self, when: str) -> None:
        """Reach `before`, `during` or `after`."""
        self.command_run.reach(f"{self.name}: {when}")

    def will_crash(self, when: str) -> bool:
        """Whether it crashes there."""
        return self.command_run.will_crash_at(f"{self.name}: {when}")


def points(diary: Sequence[LogEntry], command_run: int = 1) -> list[str]:
    """The points that a command run reached, in order."""
    return [line.point for line in diary if line.command_run == command_run and line.point]


def kind_of(point: str) -> str:
    """The kind of a point: `append 3: after` is `after append`."""
    action, when = point.split(": ")
    return f"{when} {action.split()[0]}"


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
