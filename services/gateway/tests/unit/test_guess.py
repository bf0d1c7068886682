"""The choice of a capability for an intent and a context."""

import pytest

from pml_common.contracts import catalog
from pml_common.contracts.registry import CapabilityHit
from pml_gateway.domain.api.speculation import Guess, SpeculationNote, guess
from services.gateway.tests.support.dns import example


def hit(name: str, score: float, from_use: float = 0.0) -> CapabilityHit:
    """Build a hit without required parameters."""
    found = next(each for each in example(catalog.DISCOVER).hits if isinstance(each, CapabilityHit))
    fields: dict[str, object] = {
        "name": name,
        "score": score,
        "from_use": from_use,
        "parameters_schema": {},
    }
    return found.model_copy(update=fields)


def test_a_score_that_use_has_raised_over_the_threshold_runs_nothing() -> None:
    found = guess([hit("fs:popular", 0.7, from_use=0.3)], {}, 0.5)
    assert isinstance(found, SpeculationNote)
    assert (found.outcome, found.score) == ("below_threshold", 0.4)


def test_use_does_not_choose_between_capabilities() -> None:
    found = guess([hit("fs:popular", 0.9, from_use=0.35), hit("fs:fitting", 0.6)], {}, 0.5)
    assert isinstance(found, Guess)
    assert found.hit.name == "fs:fitting"
    assert found.ran.score == pytest.approx(0.6)
