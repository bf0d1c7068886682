"""Records of a campaign: what was done to the stack, what was asked of it, what it left behind."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

WRITES = ("mark", "pay", "refuse", "put")
ONCE = ("mark", "pay", "refuse")
"""Tools, by the second part of their ids, whose calls may not be repeated."""


@dataclass(frozen=True)
class Fault:
    """Something to do to a part of the stack, for so many seconds where it lasts."""

    kind: str
    target: str
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """Without its length."""
        return f"{self.kind} {self.target}"


@dataclass(frozen=True)
class Injection:
    """A fault as it happened; times in Unix seconds. `recovered` is when all parts were healthy
    again, None if they were not within the bound."""

    fault: Fault
    began: float
    ended: float
    recovered: float | None
    note: str = ""

    def overlaps(self, since: float, until: float) -> float:
        """For how many seconds of a span it lasted, recovery included."""
        end = self.ended if self.recovered is None else self.recovered
        return max(0.0, min(until, end) - max(since, self.began))


@dataclass
class Asked:
    """One run as its caller saw it; `told` are the ends that it was told."""

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
    """A workflow as the stack has it at the end. `status` is `success`, `error` or what it is
    before its end; `kind` and `message` are its error's; times in Unix seconds; `ends` counts the
    different ends stated of it; `fits`: it came to the end that its program must come to;
    `poisoned` is how the campaign spoilt what the bus holds of it.
    """

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
    """How often a capability is said to have been used, how many runs of it ended, and how many
    traces of it are kept."""

    capability: str
    counted: int
    runs: int
    traces: int


@dataclass(frozen=True)
class Evidence:
    """Everything the verdict is about; `made` are the calls that reached a tool, by run."""

    runs: Sequence[Run]
    made: Mapping[str, Counter[str]]
    uses: Sequence[Use]
    injections: Sequence[Injection]
    health: Mapping[str, str]
    """Parts that are not healthy at the end, with the reason."""
    unreadable: Sequence[str] = ()
    """Stored messages that cannot be read, though the campaign did not put them there."""
    dead: Sequence[str] = ()
    """Messages that a consumer gave up, though the campaign did nothing to them."""
    unknown: Sequence[str] = ()
    """Workflows that nobody asked for."""
    now: float = 0.0
    """When it was collected, Unix seconds."""
