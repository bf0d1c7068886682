"""The state of a running stack, for other commands. It includes passwords, so its file is
private.

Most commands read it first, so this module imports little: psutil alone costs more than an
interpreter's start.
"""

import json
import os
import sys
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, cast

FILE_NAME = "stack.json"
CLOCK_SLACK_SECONDS = 1.0


class PartState(NamedTuple):
    """One running part; `metrics` is where a service has its metrics, for Prometheus."""

    pid: int
    port: int
    log: Path
    metrics: str | None = None


class PartDown(NamedTuple):
    """A part that is down: since when, why, and when it is restarted. `failures` in a row led to
    this."""

    since: datetime
    reason: str
    failures: int
    next_try: datetime


class StackState(NamedTuple):
    """A running stack; `pid` is its supervisor's."""

    pid: int
    url: str
    nats_url: str
    postgres_dsn: str
    parts: Mapping[str, PartState]
    down: Mapping[str, PartDown] = {}
    approver_key: Path | None = None


def read_state(home: Path) -> StackState | None:
    """The stack that runs on this folder; None when none does."""
    recorded = load(home)
    if recorded is None:
        return None
    state, written_at = recorded
    return state if runs_since(state.pid, written_at) else None


def write_state(home: Path, state: StackState) -> None:
    """Replace the state file atomically."""
    aside = home / f"{FILE_NAME}.new"
    aside.touch(mode=0o600)
    aside.write_text(json.dumps(document(state), indent=2))
    aside.replace(home / FILE_NAME)


def remove_state(home: Path) -> None:
    """Remove the state file."""
    (home / FILE_NAME).unlink(missing_ok=True)


def load(home: Path) -> tuple[StackState, float] | None:
    """The record and the time it was written."""
    file = home / FILE_NAME
    try:
        return _state(json.loads(file.read_bytes())), file.stat().st_mtime
    except (FileNotFoundError, PermissionError, ValueError, KeyError, TypeError, AttributeError):
        return None


def runs_since(pid: int, written_at: float) -> bool:
    """Whether the process of this number runs, and is none that began after the record was
    written."""
    began = _began(pid)
    return began is not None and began <= written_at + CLOCK_SLACK_SECONDS


def document(value: object) -> Any:
    """A state, or a part of one, as JSON."""
    if isinstance(value, tuple):
        value = cast(Any, value)._asdict()
    if isinstance(value, dict):
        return {key: document(each) for key, each in cast(Mapping[str, object], value).items()}
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return str(value) if isinstance(value, Path) else value


def _state(told: Mapping[str, Any]) -> StackState:
    key = told.get("approver_key")
    return StackState(
        pid=int(told["pid"]),
        url=told["url"],
        nats_url=told["nats_url"],
        postgres_dsn=told["postgres_dsn"],
        parts={name: _part(part) for name, part in told["parts"].items()},
        down={name: _down(part) for name, part in told.get("down", {}).items()},
        approver_key=None if key is None else Path(key),
    )


def _part(told: Mapping[str, Any]) -> PartState:
    return PartState(told["pid"], told["port"], Path(told["log"]), told.get("metrics"))


def _down(told: Mapping[str, Any]) -> PartDown:
    since, next_try = (datetime.fromisoformat(told[key]) for key in ("since", "next_try"))
    return PartDown(since, told["reason"], told["failures"], next_try)


def _began(pid: int) -> float | None:
    """When a process began; None for one that does not run, or is a zombie."""
    if sys.platform != "linux":
        from pml_local.process import began

        return began(pid)
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    state, *numbers = text.rpartition(")")[2].split()
    boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return None if state in "ZX" else boot + int(numbers[18]) / os.sysconf("SC_CLK_TCK")
