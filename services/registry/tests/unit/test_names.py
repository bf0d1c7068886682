"""Names: provisional ones, references, similar names."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_registry.domain.names import (
    first_free,
    resolve_reference,
    similar_names,
    similar_references,
    unnamed_names,
)

HASHES = st.text("0123456789abcdef", min_size=64, max_size=64)


def test_a_provisional_name_has_four_digits_of_the_hash_or_more_if_taken() -> None:
    names = unnamed_names("a7f3c2")
    assert names == ["unnamed_a7f3", "unnamed_a7f3c", "unnamed_a7f3c2"]
    assert first_free(names, {"unnamed_a7f3"}) == "unnamed_a7f3c"


def test_names_that_are_all_taken_are_an_error_that_names_one() -> None:
    with pytest.raises(LookupError, match="unnamed_a7f3c2"):
        first_free(unnamed_names("a7f3c2"), set(unnamed_names("a7f3c2")))


def test_similar_names_are_suggested() -> None:
    names = ["fs:ensure_file", "fs:ensure_dir", "http:get"]
    assert similar_names("fs:ensure_fil", names) == ["fs:ensure_file", "fs:ensure_dir"]
    assert similar_names("zzz", names) == []


@given(HASHES, st.lists(HASHES, max_size=5))
def test_two_hashes_never_share_a_provisional_name(code_hash: str, others: list[str]) -> None:
    taken: set[str] = set()
    for other in dict.fromkeys([*others, code_hash]):
        name = first_free(unnamed_names(other), taken)
        assert other.startswith(name.removeprefix("unnamed_"))
        taken.add(name)


ONE, OTHER = UUID(int=0xA1F3E), UUID(int=0xB1F3E)


@pytest.mark.parametrize(
    ("reference", "meant"),
    [
        ("a:b", "a:b"),
        ("a_b", "a:b"),
        ("a-b:c", "a-b:c"),
        ("a_b_c", "a-b:c"),
        ("a_b_1f3e", "a:b"),
        ("a_b_a1f3e", "a:b"),
        ("a_b_c_1f3e", "a-b:c"),
        ("a_b_b1f3e", None),
        (str(ONE), "a:b"),
        (str(UUID(int=7)), None),
        ("a", None),
    ],
)
def test_a_reference_is_an_id_a_name_a_callable_name_or_one_with_digits_of_the_id(
    reference: str, meant: str | None
) -> None:
    names = [("a:b", ONE), ("a-b:c", OTHER), ("a:b_c", ONE)]
    assert resolve_reference(reference, names) == meant


def test_callable_names_are_suggested_for_a_callable_name() -> None:
    assert similar_references("fs_raed", ["fs:read"]) == ["fs_read"]
    assert similar_references("fs:raed", ["fs:read"]) == ["fs:read"]
