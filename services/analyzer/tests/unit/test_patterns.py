"""Code → nodes, edges, arguments, data flow: the whole table of patterns."""

from collections import Counter

import pytest

from services.analyzer.tests.patterns import Pattern, known, patterns, understood

PATTERNS = patterns()
UNSEEN = ("path", "apart")
"""Facts that only a run can show."""


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.id)
def test_a_pattern_is_understood_as_the_table_says(pattern: Pattern) -> None:
    expected = {name: text for name, text in pattern.facts.items() if name not in UNSEEN}
    assert known(understood(pattern.code)) == expected


def test_the_table_is_large_and_nothing_stands_in_it_twice() -> None:
    assert len(PATTERNS) >= 150
    twice = [code for code, count in Counter(p.code for p in PATTERNS).items() if count > 1]
    assert not twice
