"""Parts of text by JavaScript's rules of indexing, spreading and iterating."""

import pytest

from pml_common.binding.patterns import ABSENT, Value, at, parts
from pml_common.contracts.structure import ResultStep


@pytest.mark.parametrize(
    ("text", "step", "found"),
    [
        ("abc", 1, "b"),
        ("abc", "1", "b"),
        ("abc", 3, ABSENT),
        ("abc", "length", ABSENT),
        ("a😀", 1, "\ud83d"),
        ("a😀", 2, "\ude00"),
    ],
)
def test_an_index_counts_utf_16_units(text: str, step: str | int, found: Value) -> None:
    assert at(text, step) == found


@pytest.mark.parametrize(
    ("value", "path", "found"),
    [
        ("a😀", (None,), ["a", "😀"]),
        ({"names": ["ab", "c"]}, ("names", None, None), ["a", "b", "c"]),
        ({"names": 5}, ("names", None), []),
    ],
)
def test_the_elements_of_text_are_its_code_points(
    value: Value, path: tuple[ResultStep, ...], found: list[Value]
) -> None:
    assert parts(value, path) == found
