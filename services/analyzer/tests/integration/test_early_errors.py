"""Programs that are refused as early errors do not load; others do."""

from collections.abc import Sequence

import pytest

from services.analyzer.tests.support.recorder import run
from services.analyzer.tests.unit.test_characters import HONEST as CHARACTERS
from services.analyzer.tests.unit.test_characters import NAMES, NO_NAMES
from services.analyzer.tests.unit.test_early_errors import EARLY, LOADED
from services.analyzer.tests.unit.test_prototypes import HONEST as LOOKS
from services.analyzer.tests.unit.test_warnings import HONEST, WARNED

pytestmark = pytest.mark.integration

REPAIRED = "a tag after ?."
"""JavaScript refuses it; Deno, which strips the types, writes it differently and loads that."""


def _refused(programs: Sequence[str]) -> list[str]:
    """Return those that do not load; none is run beyond its first line."""
    outcomes = run([f"return 1;\n{code}" for code in programs])
    return [code for code, end in zip(programs, outcomes, strict=True) if isinstance(end, str)]


def test_what_is_refused_early_does_not_load() -> None:
    early = [code for name, (code, _) in EARLY.items() if name != REPAIRED]
    refused = [*early, *(code for code, _ in NO_NAMES.values())]
    assert _refused(refused) == refused


def test_what_is_taken_loads() -> None:
    taken = [
        *LOADED.values(),
        *NAMES.values(),
        *CHARACTERS.values(),
        *LOOKS.values(),
        *HONEST.values(),
        *(code for code, _ in WARNED.values()),
    ]
    assert len(taken) > 150
    assert _refused(taken) == []
