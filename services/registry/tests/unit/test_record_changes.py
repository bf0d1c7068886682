"""Changes of records, decided purely."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pml_common.contracts.cursors import BadCursor
from pml_common.contracts.dns import (
    LabelRecord,
    Rename,
    SetVisibility,
    TagVersion,
    Transfer,
    Unyank,
    Yank,
)
from pml_common.contracts.references import Latest, Number, Tag
from pml_registry.domain.cursors import (
    After,
    decode_after,
    decode_sequence,
    encode_after,
    encode_sequence,
)
from pml_registry.domain.globs import like_of
from pml_registry.domain.history import history_entry, unified_diff
from pml_registry.domain.record_changes import (
    Describe,
    Effect,
    FoundAs,
    OwnChange,
    RecordState,
    Refused,
    StoredChange,
    change,
    latest_of,
)
from pml_registry.domain.reservations import holder_text
from pml_registry.domain.versions import Version
from pml_registry.domain.visibility import Viewer
from services.registry.tests.support.builders import AUTHOR, SCOPE

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
BY = Viewer(SCOPE, AUTHOR)


def state(*yanked: str | None, tags: tuple[str, ...] = ()) -> RecordState:
    """A record whose versions are yanked for these reasons."""
    versions = tuple(
        Version(number, NOON, Tag((number, 0, 0)), reason)
        for number, reason in enumerate(yanked or (None,), 1)
    )
    return RecordState(
        record_id=uuid4(),
        names=("fs:old", "fs:read"),
        owner=AUTHOR,
        visibility="project",
        tags=tags,
        versions=versions,
        behaviours=tuple(uuid4() for _ in versions),
        latest=latest_of(versions),
    )


def test_an_effect_says_what_the_version_concerned_is_found_by() -> None:
    before = state(None, None)
    effect = change(before, Describe(" counts "), Number(1), BY, None)
    assert isinstance(effect, Effect)
    assert effect.found_as == FoundAs(before.behaviours[0], "fs:read", "counts")
    renamed = change(before, Rename(name="fs:show"), Latest(), BY, None)
    assert isinstance(renamed, Effect)
    assert renamed.found_as == FoundAs(before.behaviours[1], "fs:show", "")


def effect_of(before: RecordState, wanted: OwnChange, number: int | None = None) -> Effect:
    """The effect that a change has."""
    selector = Latest() if number is None else Number(number)
    found = change(before, wanted, selector, BY, None)
    assert isinstance(found, Effect)
    return found


@pytest.mark.parametrize(
    "wanted",
    [
        Rename(name="fs:read"),
        TagVersion(version_tag="v2.0.0"),
        LabelRecord(add=("files",), remove=("other",)),
        Unyank(),
        SetVisibility(visibility="project"),
        Transfer(owner=AUTHOR),
    ],
    ids=lambda wanted: type(wanted).__name__,
)
def test_what_is_so_already_changes_nothing(wanted: OwnChange) -> None:
    assert change(state(None, None, tags=("files",)), wanted, Latest(), BY, None) is None


@pytest.mark.parametrize(
    ("viewer", "may"),
    [
        (BY, True),
        (Viewer(SCOPE, "other", is_admin=True), True),
        (Viewer(SCOPE, "other"), False),
        (Viewer(SCOPE), False),
    ],
)
def test_an_owner_or_an_admin_changes_a_record(viewer: Viewer, may: bool) -> None:
    found = change(state(), Transfer(owner="mira"), Latest(), viewer, None)
    assert isinstance(found, Effect) == may
    if isinstance(found, Refused):
        assert "fs:read belongs to agent-7" in found.why


def test_a_description_is_of_one_version_and_its_history_has_both() -> None:
    before = state(None, None)
    described = effect_of(before, Describe(" reads a file "), 1)
    assert [each.description for each in described.state.versions] == ["reads a file", ""]
    assert (described.change, described.version, described.describes) == ("labelled", 1, True)
    assert described.details == {"description": "reads a file", "before": ""}
    again = change(described.state, Describe("reads a file"), Number(1), BY, None)
    assert again is None
    assert not effect_of(before, LabelRecord(add=("io",))).describes


def test_a_former_name_can_be_had_again() -> None:
    renamed = effect_of(state(), Rename(name="fs:old"))
    assert renamed.state.names == ("fs:read", "fs:old")


def test_too_many_tags_are_refused() -> None:
    full = state(tags=tuple(f"t{number}" for number in range(32)))
    found = change(full, LabelRecord(add=("one-more",)), Latest(), BY, None)
    assert found == Refused("invalid", "fs:read would have 33 tags, of at most 32")


def test_a_version_that_is_not_there_is_named() -> None:
    found = change(state(), Yank(reason="old"), Number(7), BY, None)
    assert isinstance(found, Refused)
    assert (found.code, found.why[:10]) == ("not_found", "fs:read@7:")


def test_a_reason_to_yank_can_be_worded_anew() -> None:
    again = effect_of(state("old", None), Yank(reason="older"), 1)
    assert again.state.versions[0].yanked == "older"


@given(st.lists(st.booleans(), min_size=1, max_size=6), st.integers(1, 6), st.booleans())
def test_the_latest_is_the_newest_that_is_not_yanked(
    yanked: list[bool], number: int, yank: bool
) -> None:
    before = state(*("old" if each else None for each in yanked))
    number = min(number, len(yanked))
    wanted = Yank(reason="bad") if yank else Unyank()
    found = change(before, wanted, Number(number), BY, None)
    after = found.state if isinstance(found, Effect) else before
    usable = [each.number for each in after.versions if each.yanked is None]
    assert after.latest == max(usable or [len(yanked)])


def test_who_has_a_name_is_said() -> None:
    assert holder_text("fs:read", None, None) is None


def test_a_cursor_is_read_as_it_is_written_and_no_other_text_is_one() -> None:
    after = After(-3, "fs:read", uuid4())
    assert decode_after(encode_after(after)) == after
    assert decode_sequence(encode_sequence(7)) == 7
    for decode, other in ((decode_after, encode_sequence(7)), (decode_sequence, "?")):
        with pytest.raises(BadCursor):
            decode(other)


@given(
    st.integers(-(2**62), 2**62),
    st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=80),
    st.integers(1, 2**31 - 1),
)
def test_cursors_are_read_as_they_are_written(rank: int, name: str, sequence: int) -> None:
    after = After(rank, name, uuid4())
    assert decode_after(encode_after(after)) == after
    assert decode_sequence(encode_sequence(sequence)) == sequence


@given(st.text("abcdefghijklmnopqrstuvwxyzABCDEFGH0123456789_-", max_size=20))
def test_no_other_text_is_a_cursor(text: str) -> None:
    for decode in (decode_after, decode_sequence):
        try:
            found = decode(text)
        except BadCursor:
            continue
        assert isinstance(found, After | int)


def test_patterns_are_those_of_sql() -> None:
    assert like_of("50%_*?\\") == "50\\%\\_%_\\\\"


def test_a_long_diff_is_cut_at_a_line() -> None:
    long = "\n".join(f"line {number} of many" for number in range(9_000))
    text = unified_diff("fs:read", 2, "", long)
    assert len(text) < 70_000
    assert text.rpartition("\n")[2].endswith("characters more")


def test_an_entry_of_the_history_has_the_difference_of_the_codes_it_is_about() -> None:
    made = StoredChange(
        sequence=4,
        change="published",
        principal="ada",
        at=NOON,
        version=2,
        tag=Tag((1, 1, 0)),
        key_id="k1",
    )
    entry = history_entry("fs:read", made, ["return 1\n", "return 2\n"])
    assert (entry.sequence, entry.version_tag, entry.key_id) == (4, "v1.1.0", "k1")
    assert entry.diff == ("--- fs:read@1\n+++ fs:read@2\n@@ -1 +1 @@\n-return 1\n+return 2")
    bare = history_entry("fs:read", replace(made, tag=None), ())
    assert (bare.version_tag, bare.diff) == (None, None)


@pytest.mark.parametrize(
    ("name", "holder", "code"),
    [("pml:read", None, "invalid"), ("fs:load", "fs:load of bob exists already", "conflict")],
)
def test_a_name_that_is_none_or_somebody_elses_is_refused(
    name: str, holder: str | None, code: str
) -> None:
    refused = change(state(), Rename(name=name), Latest(), BY, holder)
    assert isinstance(refused, Refused)
    assert refused.code == code
