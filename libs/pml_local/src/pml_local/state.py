"""The state of a running stack, for other commands. It includes passwords, so its file is
private."""

import signal
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

import psutil
from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from pml_local.events import Event, PartReady, PartRestarting, PartStopped
from pml_local.process import is_running, terminate_all

FILE_NAME = "stack.json"
LEFTOVER_SECONDS = 5.0
CLOCK_SLACK_SECONDS = 1.0


class PartState(BaseModel):
    """One running part; `metrics` is where a service has its metrics, for Prometheus."""

    model_config = ConfigDict(frozen=True)

    pid: int
    port: int
    log: Path
    metrics: str | None = None


class PartDown(BaseModel):
    """A part that is down: since when, why, and when it is restarted. `failures` in a row led to
    this."""

    model_config = ConfigDict(frozen=True)

    since: AwareDatetime
    reason: str
    failures: int
    next_try: AwareDatetime


class DownParts:
    """The parts that exited unexpectedly and are not ready again, collected from events."""

    def __init__(self) -> None:
        self._parts: dict[str, PartDown] = {}

    @property
    def parts(self) -> Mapping[str, PartDown]:
        """The parts that are down, by name."""
        return dict(self._parts)

    def observe(self, event: Event, now: datetime) -> bool:
        """Apply an event; returns whether it changed anything."""
        if isinstance(event, PartRestarting):
            known = self._parts.get(event.name)
            self._parts[event.name] = PartDown(
                since=known.since if known else now,
                reason=event.reason,
                failures=event.failures,
                next_try=now + timedelta(seconds=event.delay),
            )
            return True
        if isinstance(event, PartReady | PartStopped):
            return self._parts.pop(event.name, None) is not None
        return False


class StackState(BaseModel):
    """A running stack; `pid` is its supervisor's."""

    model_config = ConfigDict(frozen=True)

    pid: int
    url: str
    nats_url: str
    postgres_dsn: str
    parts: Mapping[str, PartState]
    down: Mapping[str, PartDown] = {}
    approver_key: Path | None = None


def read_state(home: Path) -> StackState | None:
    """The stack that runs on this folder; None when none does."""
    recorded = _load(home)
    if recorded is None:
        return None
    state, written_at = recorded
    return state if _same_process(state.pid, written_at) is not None else None


def write_state(home: Path, state: StackState) -> None:
    """Replace the state file atomically."""
    aside = home / f"{FILE_NAME}.new"
    aside.touch(mode=0o600)
    aside.write_text(state.model_dump_json(indent=2))
    aside.replace(home / FILE_NAME)


def remove_state(home: Path) -> None:
    """Remove the state file."""
    (home / FILE_NAME).unlink(missing_ok=True)


def end_leftovers(home: Path) -> None:
    """End the parts that outlived the supervisor of a stack (see parent_death.py).

    The caller holds the folder's lock, so that supervisor is gone. Blocks: call it in a thread.
    """
    recorded = _load(home)
    if recorded is None:
        return
    state, written_at = recorded
    parts = [_same_process(part.pid, written_at) for part in state.parts.values()]
    living = [process for process in parts if process is not None]
    terminate_all(living, signal.SIGINT, LEFTOVER_SECONDS)
    remove_state(home)


def _load(home: Path) -> tuple[StackState, float] | None:
    """The record and the time it was written."""
    file = home / FILE_NAME
    try:
        return StackState.model_validate_json(file.read_bytes()), file.stat().st_mtime
    except (FileNotFoundError, PermissionError, ValidationError):
        return None


def _same_process(pid: int, written_at: float) -> psutil.Process | None:
    """The recorded process; None when a later process has reused its pid."""
    try:
        process = psutil.Process(pid)
        younger = process.create_time() > written_at + CLOCK_SLACK_SECONDS
    except psutil.NoSuchProcess:
        return None
    return process if is_running(process) and not younger else None
