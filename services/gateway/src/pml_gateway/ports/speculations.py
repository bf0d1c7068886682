"""Ports of speculation: runs of guesses, and the threshold that they teach."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from pml_common.contracts.learner import Feedback, GiveFeedback
from pml_common.contracts.scope import Scope
from pml_gateway.domain.api.speculation_threshold import (
    Opinion,
    SpeculatedRun,
    SpeculationThreshold,
)


class SpeculatedRuns(Protocol):
    """Stores runs of guesses and the opinions of them. Every method may raise
    StorageUnavailable."""

    async def add(self, scope: Scope, workflow_id: UUID, principal: str, at: datetime) -> None:
        """Store that a guess is run for a principal. A repetition changes nothing; beyond
        `MOST_PER_HOUR` of a principal in an hour none is stored."""
        ...

    async def judge(self, scope: Scope, workflow_id: UUID, opinion: Opinion) -> None:
        """Store the principal's opinion in place of an earlier one; nothing for a workflow that is
        no guess's, or beyond `MOST_PER_HOUR` of other opinions in an hour."""
        ...

    async def since(self, scope: Scope, at: datetime) -> Sequence[SpeculatedRun]:
        """Return the runs that began since, at most `MOST_READ` of the newest, with their opinions
        and what became of them."""
        ...

    async def forget(self, before: datetime) -> None:
        """Delete the runs that began before, of all scopes, with the opinions of them."""
        ...


class Speculations(Protocol):
    """The threshold of speculation of each scope, and the opinions that it learns from."""

    async def threshold(self, scope: Scope) -> SpeculationThreshold:
        """Return the present threshold. Raises StorageUnavailable."""
        ...

    async def judge(self, asked: GiveFeedback, timeout_s: float = 5.0) -> Feedback:
        """Store an opinion of a workflow's run, and return all of its capability. Raises
        QueryFailed and StorageUnavailable."""
        ...
