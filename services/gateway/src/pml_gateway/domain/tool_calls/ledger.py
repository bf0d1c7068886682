"""The call ledger: decides on a tool call that may have been made before."""

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from pml_common.contracts.gateway import CallTool, ToolOutcome


@dataclass(frozen=True)
class Entry:
    """A call that was begun: the gateway process that owns it, its deadline, and its outcome once
    that is known. The outcome of a `repeatable` one is stored without waiting for the disk. `tool`
    is that of a stored entry. An entry that `replaces` another is stored in its place: that has
    this fingerprint."""

    fingerprint: str
    owner: UUID
    deadline: datetime
    outcome: ToolOutcome | None = None
    repeatable: bool = False
    tool: str = ""
    replaces: str | None = None


@dataclass(frozen=True)
class Answer:
    """The outcome is known."""

    outcome: ToolOutcome


@dataclass(frozen=True)
class Wait:
    """Another gateway process is still making the call: the executor asks again."""


@dataclass(frozen=True)
class CallAgain:
    """The process that made the call is dead, and the call is repeatable: take it over from
    `owner`."""

    owner: UUID


Verdict = Answer | Wait | CallAgain

_ASKED_JUST_NOW = timedelta(seconds=2)
"""An executor asks again after 5 s; the difference allows for clock skew."""

MISUSED = ToolOutcome(status="refused", message="its idempotency key belongs to another call")
LOST = ToolOutcome(
    status="unknown",
    message="the gateway that made this call stopped before it stored the outcome",
)


def fingerprint(call: CallTool) -> str:
    """Return the SHA-256 (hex) of tool and arguments, which a repeated call must share with the
    first."""
    content = json.dumps([call.tool, call.args], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()


def is_certainly_new(call: CallTool, now: datetime) -> bool:
    """Whether no gateway can have made this call before: the executor asks for the first time, and
    so recently that it has not turned to another gateway meanwhile."""
    asked = call.asked_first_at
    return asked is not None and abs(now - asked) < _ASKED_JUST_NOW


def is_discarded(entry: Entry, call: CallTool, *, only_read: bool) -> bool:
    """Whether an entry is that of another call, made by an execution of which the journal kept
    nothing: its executor died, and the program, run again, makes this call instead. Only a call
    that only reads is made before the journal has it."""
    return only_read and entry.fingerprint != fingerprint(call)


def judge(
    entry: Entry, call: CallTool, *, repeatable: bool, owner_lives: bool, now: datetime
) -> Verdict:
    """Decide on a call whose key is in the ledger already."""
    if entry.fingerprint != fingerprint(call):
        return Answer(MISUSED)
    if entry.outcome is not None:
        return Answer(entry.outcome)
    if owner_lives and now < entry.deadline:
        return Wait()
    return CallAgain(entry.owner) if repeatable else Answer(LOST)
