"""Opinions of runs."""

from uuid import UUID

from pml_learner.domain.opinions import Weights, use_judged
from services.learner.tests.support.builders import SCOPE


def test_each_opinion_of_a_run_has_a_message_of_its_own() -> None:
    workflow_id = UUID(int=1)
    first = use_judged(SCOPE, workflow_id, Weights(1.0, 0.0, 5.0))
    assert (first.workflow_id, first.useful, first.not_useful) == (workflow_id, 1.0, 0.0)
    assert use_judged(SCOPE, workflow_id, Weights(1.0, 0.0, 5.0)) == first
    assert use_judged(SCOPE, workflow_id, Weights(2.0, 0.0, 6.0)).event_id != first.event_id
