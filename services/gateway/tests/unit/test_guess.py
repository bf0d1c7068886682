"""The choice of a capability for an intent and a context."""

import pytest

from pml_common.contracts import catalog
from pml_common.contracts.registry import CapabilityHit
from pml_common.contracts.tool import JsonObject
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


def test_without_capabilities_there_is_none_to_run() -> None:
    found = guess([], {}, 0.5)
    assert isinstance(found, SpeculationNote)
    assert (found.outcome, found.capability) == ("no_capability", None)


def test_the_context_gives_the_parameters_and_what_it_has_beside_them_is_told() -> None:
    schema: JsonObject = {"type": "object", "properties": {"path": {}}, "required": ["path"]}
    reads = hit("fs:read_all", 0.9).model_copy(update={"parameters_schema": schema})
    found = guess([reads], {"path": "/a", "mood": "good"}, 0.5)
    assert isinstance(found, Guess)
    assert (found.args, found.unused) == ({"path": "/a"}, ("mood",))
    assert found.ran.message.endswith(" Not used: mood.")
    lacking = guess([reads], {"mood": "good"}, 0.5)
    assert isinstance(lacking, SpeculationNote)
    assert (lacking.outcome, lacking.missing) == ("missing_arguments", ("path",))
    assert lacking.message.startswith("Did not run fs:read_all, whose score 0.90 reaches")


@pytest.mark.parametrize(
    ("last_good", "instead"),
    [("1.0.0", "1.0.0 is healthy"), (None, "no earlier version is healthy")],
)
def test_one_that_fails_mostly_is_not_run(last_good: str | None, instead: str) -> None:
    fails = hit("fs:fails", 0.9).model_copy(update={"health": "failing", "last_good": last_good})
    found = guess([fails], {}, 0.5)
    assert isinstance(found, SpeculationNote)
    assert found.outcome == "failing"
    assert instead in found.message
