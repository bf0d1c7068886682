"""Selection of versions."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts.references import Latest, Number, Tag, parse_selector
from pml_registry.domain.versions import NoVersion, Selected, Version, select


def on(day: int, number: int, tag: str = "", yanked: str | None = None) -> Version:
    parsed = parse_selector(tag) if tag else None
    assert parsed is None or isinstance(parsed, Tag)
    return Version(number, datetime(2025, 12, day, 12, tzinfo=UTC), parsed, yanked)


VERSIONS = (
    on(1, 1, "v1.0.0"),
    on(2, 2, "v1.2.0"),
    on(2, 3, "v1.10.0", yanked="deletes too much"),
    on(4, 4, "v2.0.0"),
    on(6, 5, yanked="slow"),
)


@pytest.mark.parametrize(
    ("selector", "number"),
    [
        ("latest", 4),
        ("1", 1),
        ("v1", 2),
        ("v1.2", 2),
        ("v1.2.0", 2),
        ("v2", 4),
        ("2025-12-01", 1),
        ("2025-12-03", 2),
        ("2025-12-05", 4),
        ("2030-01-01", 4),
    ],
)
def test_a_selector_means(selector: str, number: int) -> None:
    assert select(VERSIONS, parse_selector(selector)) == Selected(VERSIONS[number - 1])


@pytest.mark.parametrize(("selector", "number"), [("3", 3), ("v1.10.0", 3), ("5", 5), ("v5", 5)])
def test_a_yanked_version_is_meant_where_it_is_named_exactly(selector: str, number: int) -> None:
    found = select(VERSIONS, parse_selector(selector))
    assert found.version.number == number
    assert found.warning == f"version {number} is yanked: {VERSIONS[number - 1].yanked}"


def test_without_such_a_tag_a_tag_of_one_number_means_that_version() -> None:
    assert select((on(1, 1), on(2, 2)), parse_selector("v2")).version.number == 2
    assert select((on(1, 1), on(2, 2, "v1.0.0")), parse_selector("v1")).version.number == 2


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        (
            "7",
            "@7: no such version; there are: 5, yanked; 4 (v2.0.0); 3 (v1.10.0), yanked; 2 (v1.2.",
        ),
        ("v1.3", "@v1.3: no version has such a tag"),
        ("v1.3.0", "@v1.3.0: no such version"),
        ("v1.10", "@v1.10: every version with such a tag is yanked"),
        ("v9", "@v9: no such version"),
        ("2025-11-30", "@2025-11-30: no version that is not yanked"),
    ],
)
def test_no_version_is_an_error_that_says_which_there_are(selector: str, said: str) -> None:
    with pytest.raises(NoVersion) as error:
        select(VERSIONS, parse_selector(selector))
    assert str(error.value).startswith(said)


def test_a_record_without_versions_says_so() -> None:
    with pytest.raises(NoVersion, match="there is none"):
        select((), Latest())


def test_a_day_is_that_of_utc() -> None:
    late = datetime(2025, 12, 2, 1, tzinfo=timezone(timedelta(hours=5)))  # the 1st in UTC
    assert select((Version(1, late),), parse_selector("2025-12-01")).version.number == 1


@given(st.lists(st.booleans(), min_size=1, max_size=8))
def test_latest_is_the_newest_that_is_not_yanked(yanked: Sequence[bool]) -> None:
    days = date(2025, 1, 1), timedelta(days=1)
    versions = [
        Version(
            number,
            datetime.combine(days[0] + number * days[1], datetime.min.time(), UTC),
            yanked="why" if out else None,
        )
        for number, out in enumerate(yanked, start=1)
    ]
    usable = [version for version in versions if version.yanked is None]
    if usable:
        assert select(versions, Latest()).version == usable[-1]
        assert select(versions, Number(usable[-1].number)).warning is None
    else:
        with pytest.raises(NoVersion):
            select(versions, Latest())
