"""Weights of opinions of runs."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from pml_common.contracts import ids
from pml_common.contracts.scope import Scope
from pml_common.contracts.uses import UseJudged

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
