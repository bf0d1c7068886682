"""Opinions of runs: their value for a capability, and their weights for the use that a run shows.
In both each principal says only so much."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from pml_common.contracts import ids
from pml_common.contracts.learner import Feedback
from pml_common.contracts.scope import Scope
from pml_common.contracts.uses import UseJudged
from pml_learner.domain.state import voiced
from pml_learner.domain.temporal_difference import Estimate, TdRule

LAST: Final = 200
"""Opinions of a capability, the last ones, that its value is computed from: more than the voices
can weigh."""


@dataclass(frozen=True)
class Opinion:
    """Whether a principal found a run useful, given in an hour of Unix time."""

    principal: str
    useful: bool
    hour: int


def valued(feedback: Feedback, opinions: Iterable[Opinion]) -> Feedback:
    """Return the feedback with its value, learned from opinions in the order in which they were
    given as success rates are from runs."""
    estimate, principals = Estimate(), tuple[str, ...]()
    for each in opinions:
        principals, who = voiced(principals, each.principal)
        estimate = estimate.observed(who, each.hour, [(each.useful, 1)], TdRule())
    low, high = estimate.interval()
    return feedback.model_copy(update={"value": estimate.value, "low": low, "high": high})


WEIGHED_OF_ONE_HOUR: Final = 5
"""Opinions of one principal in one hour that have a weight; later ones are kept and counted."""


@dataclass(frozen=True)
class Weights:
    """The weights of the opinions of one run, both ways, and the time of the last one, in
    milliseconds of Unix time."""

    useful: float
    not_useful: float
    judged_at: float


def use_judged(scope: Scope, workflow_id: UUID, weights: Weights) -> UseJudged:
    """Build the message; one opinion has one."""
    return UseJudged(
        scope=scope,
        event_id=ids.effect_id(workflow_id, f"use-judged/{weights.judged_at}"),
        workflow_id=workflow_id,
        useful=weights.useful,
        not_useful=weights.not_useful,
        judged_at=weights.judged_at,
    )
