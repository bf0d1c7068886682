"""Statistics and listing."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pml_registry.domain.listing import (
    Listing,
    StoredCapability,
    first_intents,
    listing,
    newest_of_each,
)
from services.registry.tests.support.builders import OTHER_HASH, UNNAMED, learning_update


def stored(revision: int = 0, *, listed: bool = False) -> StoredCapability:
    return StoredCapability(UNNAMED, False, listed, revision)


def test_the_first_success_lists_a_capability() -> None:
    assert listing(stored(), learning_update(1)) == Listing(listed=True, change="listed")


def test_without_a_success_it_stays_unlisted() -> None:
    unsuccessful = learning_update(2, successes=0)
    assert listing(stored(1), unsuccessful) == Listing(listed=False, change="learned")


def test_a_listed_capability_stays_listed() -> None:
    known = stored(1, listed=True)
    assert listing(known, learning_update(2, successes=0)) == Listing(listed=True, change="learned")


def test_an_older_or_equal_revision_changes_nothing() -> None:
    assert listing(stored(3), learning_update(3)) is None
    assert listing(stored(3), learning_update(2)) is None


@given(st.permutations(range(1, 7)))
def test_in_any_order_the_newest_revision_is_stored(order: list[int]) -> None:
    known = stored()
    for revision in order:
        standing = listing(known, learning_update(revision))
        if standing is not None:
            known = stored(revision, listed=standing.listed)
    assert known.learning_revision == 6


def test_of_several_updates_the_newest_of_each_capability_remains() -> None:
    ours, other = [learning_update(n) for n in (2, 3, 1)], learning_update(1, code_hash=OTHER_HASH)
    assert {each.event_id for each in newest_of_each([*ours, other])} == {
        ours[1].event_id,
        other.event_id,
    }


def test_the_first_success_with_an_intent_says_what_a_capability_is_for() -> None:
    said = {2: "count lines", 1: " ", 3: "greet", 4: None}
    updates = [learning_update(revision, intent=intent) for revision, intent in said.items()]
    other = learning_update(1, code_hash=OTHER_HASH)
    assert first_intents([*reversed(updates), other]) == {
        (updates[0].scope, updates[0].capability_id): "count lines"
    }


def test_junk_is_not_listed_but_stays_so_where_it_is() -> None:
    for junk in (replace(stored(), makes_calls=False), replace(stored(), is_variant=True)):
        assert listing(junk, learning_update(1)) == Listing(listed=False, change="learned")
        known = replace(junk, listed=True)
        assert listing(known, learning_update(1)) == Listing(listed=True, change="learned")
