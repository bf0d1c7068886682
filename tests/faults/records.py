"""Records of a campaign: its faults, its requests, and the evidence."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

WRITES = ("mark", "pay", "refuse", "put")
ONCE = ("mark", "pay", "refuse")
"""Tools, by the second part of their ids, whose calls may not be repeated."""


@dataclass(frozen=True)
class Fault:
    """A fault of a part of the stack, with a duration in seconds if it lasts."""

    kind: str
    target: str
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """The name without the duration."""
        return f"{self.kind} {self.target}"


@dataclass(frozen=True)
class Injection:
    """A fault that happened; times in Unix seconds. `recovered` is the time when all parts were
    healthy again, None if that took longer than the limit."""

    fault: Fault
    began: float
    ended: float
    recovered: float | None
    note: str = ""

    def overlaps(self, since: float, until: float) -> float:
        """Seconds of its overlap with a time span, recovery included."""
        end = self.ended if self.recovered is None else self.recovered
        return max(0.0, min(until, end) - max(since, self.began))


@dataclass
class Asked:
    """One run as its caller saw it; `told` are the ends that it received."""

    run: str
    program: str
    workflow_id: UUID
    accepted: bool = False
    cancelled: bool = False
    denied: bool = False
    told: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    wrong: list[str] = field(default_factory=list[str])
    """Answers that no caller should get."""


@dataclass(frozen=True)
class Journaled:
    """A call in a journal; `end` is `ok`, the kind of its error, or `open` without an end."""

    call: str
    tool: str
    end: str


@dataclass(frozen=True)
class Run:
    """A workflow's final state. `status` is `success`, `error` or an unfinished status; `kind` and
    `message` are its error's; times in Unix seconds; `ends` counts its different published ends;
    `fits`: it has the program's expected end; `poisoned` describes how the campaign poisoned its
    messages."""

    asked: Asked
    status: str
    kind: str = ""
    message: str = ""
    created: float = 0.0
    finished: float | None = None
    timeout_s: float = 0.0
    ends: int = 0
    fits: bool = True
    poisoned: str = ""
    calls: Sequence[Journaled] = ()

    @property
    def is_final(self) -> bool:
        """Whether it has ended."""
        return self.status in ("success", "error")


@dataclass(frozen=True)
class Use:
    """Use of a capability: the reported count, the number of ended runs, and the number of stored
    traces."""

    capability: str
    counted: int
    runs: int
    traces: int


@dataclass(frozen=True)
class Evidence:
    """All input of the verdict; `made` are the calls that reached a tool, by run."""

    runs: Sequence[Run]
    made: Mapping[str, Counter[str]]
    uses: Sequence[Use]
    injections: Sequence[Injection]
    health: Mapping[str, str]
    """Parts that are not healthy at the end, with the reason."""
    unreadable: Sequence[str] = ()
    """Stored messages that cannot be read, except the campaign's own."""
    dead: Sequence[str] = ()
    """Messages that a consumer dead-lettered, except poisoned ones."""
    unknown: Sequence[str] = ()
    """Workflows that no caller requested."""
    now: float = 0.0
    """Time of the collection in Unix seconds."""
