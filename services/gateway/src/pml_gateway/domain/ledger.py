"""The call ledger: what to do about a tool call that may have been made before (B6)."""

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pml_common.contracts.gateway import CallTool, ToolOutcome


@dataclass(frozen=True)
class Entry:
    """A call that was begun: by which gateway process, until when it runs at most, and how it
    ended, once that is known."""

    fingerprint: str
    owner: UUID
    deadline: datetime
    outcome: ToolOutcome | None = None


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

MISUSED = ToolOutcome(status="refused", message="its idempotency key stands for another call")
LOST = ToolOutcome(
    status="unknown",
    message="the gateway that made this call went away before it told how the call ended",
)


def fingerprint(call: CallTool) -> str:
    """What a repeated call must have in common with the first: SHA-256 of tool and arguments."""
    content = json.dumps([call.tool, call.args], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()


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
