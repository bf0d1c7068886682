"""Events of a stack's life cycle, for user interfaces."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class PartStarting:
    """A part is being started or restarted."""

    name: str


@dataclass(frozen=True, slots=True)
class PartReady:
    """A part is ready, `seconds` after its start began."""

    name: str
    pid: int
    port: int
    seconds: float


@dataclass(frozen=True, slots=True)
class PartExited:
    """A part exited unexpectedly; `code` is the negated signal number when a signal ended it."""

    name: str
    code: int
    log: Path


@dataclass(frozen=True, slots=True)
class PartRestarting:
    """A part will be restarted after `delay` seconds; `failures` in a row led to this."""

    name: str
    reason: str
    failures: int
    delay: float


@dataclass(frozen=True, slots=True)
class PartStalled:
    """A part runs but does not work; it is killed and restarted."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class PartStopped:
    """A part was stopped on request."""

    name: str
    code: int


@dataclass(frozen=True, slots=True)
class WaitingForMcpServers:
    """Every part is ready; these MCP servers are still connecting."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StackReady:
    """Every part is ready, `seconds` after the start began. `servers` maps each MCP server to the
    problem that keeps its tools from being used, or to an empty string."""

    url: str
    home: Path
    seconds: float
    servers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class StackStopping:
    """The parts are being stopped."""


@dataclass(frozen=True, slots=True)
class StackStopped:
    """All parts have stopped."""


Event = (
    PartStarting
    | PartReady
    | PartExited
    | PartRestarting
    | PartStalled
    | PartStopped
    | WaitingForMcpServers
    | StackReady
    | StackStopping
    | StackStopped
)
OnEvent = Callable[[Event], None]


def ignore(_event: Event) -> None:
    """Discard an event."""
