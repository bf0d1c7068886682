"""The call ledger: what to do about a tool call that may have been made before (B6)."""

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from pml_common.contracts.gateway import CallTool, ToolOutcome


@dataclass(frozen=True)
class Entry:
    """A call that was begun: by which gateway process, until when it runs at most, and how it
    ended, once that is known. Whether it may be made again tells how it is to be kept."""

    fingerprint: str
    owner: UUID
    deadline: datetime
    outcome: ToolOutcome | None = None
    repeatable: bool = False


@dataclass(frozen=True)
class Answer:
    """The outcome is settled."""

    outcome: ToolOutcome


@dataclass(frozen=True)
class Wait:
    """Another gateway process is still making the call: ask again."""


@dataclass(frozen=True)
class CallAgain:
    """Whoever made the call is gone, and it may be made again: take it over from `owner`."""

    owner: UUID


Verdict = Answer | Wait | CallAgain

_ASKED_JUST_NOW = timedelta(seconds=2)
"""An executor asks again after 5 s; the rest is for clocks that differ."""

MISUSED = ToolOutcome(status="refused", message="its idempotency key stands for another call")
LOST = ToolOutcome(
    status="unknown",
    message="the gateway that made this call went away before it told how the call ended",
)


def fingerprint(call: CallTool) -> str:
    """What a repeated call must have in common with the first: SHA-256 of tool and arguments."""
    content = json.dumps([call.tool, call.args], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()


def surely_new(call: CallTool, now: datetime) -> bool:
    """Whether nobody can have made this call before: it is asked for the first time, and that so
    lately that whoever asks has not turned to another gateway meanwhile."""
    asked = call.asked_first_at
    return asked is not None and abs(now - asked) < _ASKED_JUST_NOW


def judge(
    entry: Entry, call: CallTool, *, repeatable: bool, owner_lives: bool, now: datetime
) -> Verdict:
    """What becomes of a call whose key is in the ledger already."""
    if entry.fingerprint != fingerprint(call):
        return Answer(MISUSED)
    if entry.outcome is not None:
        return Answer(entry.outcome)
    if owner_lives and now < entry.deadline:
        return Wait()
    return CallAgain(entry.owner) if repeatable else Answer(LOST)
