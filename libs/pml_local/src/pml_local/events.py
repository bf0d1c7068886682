"""What happens to a stack, for whoever shows it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class PartStarting:
    """A part is being started for the first time, or again."""

    name: str


@dataclass(frozen=True, slots=True)
class PartReady:
    """A part answers; `seconds` since it was being started."""

    name: str
    pid: int
    port: int
    seconds: float


@dataclass(frozen=True, slots=True)
class PartExited:
    """A part ended without being asked to; `code` is minus the signal when one ended it."""

    name: str
    code: int
    log: Path


@dataclass(frozen=True, slots=True)
class PartRestarting:
    """It will be started again after `delay` seconds; `failures` in a row led to this."""

    name: str
    reason: str
    failures: int
    delay: float


@dataclass(frozen=True, slots=True)
class PartStalled:
    """A part runs and does not do its work; it is ended, to be started again."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class PartStopped:
    """A part ended because it was asked to."""

    name: str
    code: int


@dataclass(frozen=True, slots=True)
class ServersAwaited:
    """Every part is ready; these MCP servers are still being connected."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StackReady:
    """Every part is ready; `seconds` since the beginning. `servers` are the MCP servers, each with
    what keeps its tools from being used, or with nothing."""

    url: str
    home: Path
    seconds: float
    servers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class StackStopping:
    """The parts are being asked to end."""


@dataclass(frozen=True, slots=True)
class StackStopped:
    """No part runs."""


Event = (
    PartStarting
    | PartReady
    | PartExited
    | PartRestarting
    | PartStalled
    | PartStopped
    | ServersAwaited
    | StackReady
    | StackStopping
    | StackStopped
)
OnEvent = Callable[[Event], None]


def ignore(_event: Event) -> None:
    """For callers who do not watch."""
