"""Contracts of uses: which tools and capabilities served which intents, and what a scope's rankings
have of it."""

from typing import Annotated, ClassVar, Final
from uuid import UUID

from pydantic import Field, StringConstraints

from pml_common.contracts.base import Contract, Event, Query

MAX_INTENT: Final = 4000
"""Characters of an intent that are kept, as many as discovery accepts."""

MAX_SERVED: Final = 50
"""Tools of one use, and its capabilities: the first ones."""

Intent = Annotated[str, StringConstraints(min_length=1, max_length=MAX_INTENT)]


class ObservedUse(Contract):
    """A run that succeeded for an intent: the tools whose calls succeeded in it, each once, and the
    capabilities that were called by name, itself or from its program. `discovery_id` is the
    discovery that the caller followed; `observed_at` the start of the run, in milliseconds of Unix
    time."""

    workflow_id: UUID
    principal: str
    intent: Intent
    discovery_id: UUID | None = None
    tools: tuple[str, ...] = Field(default=(), max_length=MAX_SERVED)
    capabilities: tuple[UUID, ...] = Field(default=(), max_length=MAX_SERVED)
    observed_at: float


class UsesObserved(Event):
    """Uses of one scope, in the order of their runs' storage; `workflow_id` is that of the last."""

    entity_field: ClassVar[str] = "workflow_id"

    workflow_id: UUID
    uses: tuple[ObservedUse, ...] = Field(min_length=1)


class UseJudged(Event):
    """The opinions of a workflow's run, by their weights, those of all principals; `judged_at`: the
    time of the last one, in milliseconds of Unix time. Complete, not a delta: the newest counts."""

    entity_field: ClassVar[str] = "workflow_id"

    workflow_id: UUID
    useful: float = Field(ge=0)
    not_useful: float = Field(ge=0)
    judged_at: float


class ShowEvidence(Query):
    """Show whether rankings of the scope use what was learned from use."""


class RankingGain(Contract):
    """A mean difference of a measure of rankings, with evidence minus without, and its 95 %
    interval."""

    mean: float
    low: float
    high: float


class EvidenceState(Contract):
    """Whether rankings use what was learned from use: while they are better by it over the last
    `trials` uses, each ranked without itself; at least `min_trials` are needed. `ndcg_without` and
    `recall_without` are nDCG and recall of the first five places without it."""

    used: bool
    trials: int = Field(ge=0)
    min_trials: int = Field(ge=1)
    ndcg_without: float
    ndcg_gain: RankingGain
    recall_without: float
    recall_gain: RankingGain
