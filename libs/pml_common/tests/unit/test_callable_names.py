"""Callable names of capabilities in a program."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts.callable_names import callable_name, callable_names, suffixed

ONE = UUID("bfde1ab3-3f21-5896-84dd-b846b27c1f3e")
OTHER = UUID("00000000-3f21-5896-84dd-b846b27c77aa")
LIKE_OTHER = UUID("11111111-3f21-5896-84dd-b846b27c77aa")

NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,6}:[a-z][a-z0-9_]{0,6}", fullmatch=True)


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("fs:read_json", "fs_read_json"),
        ("my-team:ship", "my_team_ship"),
        ("runTests", "runTests"),
        ("unnamed_a7f3", "unnamed_a7f3"),
        ("7zip:pack", "_7zip_pack"),
        ("caf\u00e9:menu", "caf__menu"),
        ("", ""),
    ],
)
def test_invalid_characters_become_underscores(name: str, called: str) -> None:
    assert callable_name(name) == called


def test_of_two_that_collide_the_first_keeps_the_plain_name() -> None:
    names = callable_names([(ONE, "a:b_c"), (OTHER, "a-b:c"), (LIKE_OTHER, "a-b:d")])
    assert names == {"a_b_c": ONE, "a_b_c_77aa": OTHER, "a_b_d": LIKE_OTHER}
    assert suffixed("a-b:c", OTHER) == "a_b_c_77aa"


def test_where_the_suffixes_collide_too_the_later_gets_more_digits() -> None:
    names = callable_names([(ONE, "a:b_c"), (OTHER, "a-b:c"), (LIKE_OTHER, "a-b:c")])
    assert names["a_b_c_c77aa"] == LIKE_OTHER


def test_a_capability_may_be_named_like_the_suffix_of_another() -> None:
    names = callable_names([(ONE, "a:b_c_77aa"), (LIKE_OTHER, "a:b_c"), (OTHER, "a-b:c")])
    assert names == {"a_b_c_77aa": ONE, "a_b_c": LIKE_OTHER, "a_b_c_c77aa": OTHER}


@given(st.lists(st.tuples(st.uuids(), NAMES), max_size=8, unique_by=lambda pair: pair[0]))
def test_every_capability_has_one_name_that_is_an_identifier(
    capabilities: list[tuple[UUID, str]],
) -> None:
    names = callable_names(capabilities)
    assert sorted(names.values()) == sorted(capability_id for capability_id, _ in capabilities)
    assert all(name.isidentifier() and name.isascii() for name in names)
