"""Names: provisional ones, references, similar names."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_registry.domain.names import (
    as_id,
    first_free,
    fqdn_of,
    similar_names,
    similar_references,
    unnamed_names,
)
from services.registry.tests.support.builders import SCOPE

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


def test_a_given_name_is_qualified_by_its_record_and_a_provisional_one_is_not() -> None:
    record_id = UUID(int=0xA7F3 << 112)
    assert fqdn_of(SCOPE, "fs:read", record_id) == "acme.webapp.fs.read.a7f3"
    assert fqdn_of(SCOPE, "unnamed_c0de", record_id) == "unnamed_c0de"


def test_an_id_is_one_whatever_its_form() -> None:
    assert as_id(str(UUID(int=7))) == UUID(int=7)
    assert as_id("fs:read") is None


def test_callable_names_are_suggested_for_a_callable_name() -> None:
    assert similar_references("fs_raed", ["fs:read"]) == ["fs_read"]
    assert similar_references("fs:raed", ["fs:read"]) == ["fs:read"]
