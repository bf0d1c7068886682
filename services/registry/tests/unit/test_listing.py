"""Statistics and listing."""

from hypothesis import given
from hypothesis import strategies as st

from pml_registry.domain.listing import Listing, StoredCapability, listing
from services.registry.tests.samples import UNNAMED, lesson


def held(revision: int = 0, *, listed: bool = False) -> StoredCapability:
    return StoredCapability(UNNAMED, False, listed, "", (), revision)


def test_the_first_success_lists_a_capability() -> None:
    assert listing(held(), lesson(1)) == Listing(listed=True, change="listed")


def test_without_a_success_it_stays_unlisted() -> None:
    unsuccessful = lesson(2, successes=0)
    assert listing(held(1), unsuccessful) == Listing(listed=False, change="learned")


def test_once_listed_it_stays_so() -> None:
    known = held(1, listed=True)
    assert listing(known, lesson(2, successes=0)) == Listing(listed=True, change="learned")


def test_an_older_or_equal_revision_changes_nothing() -> None:
    assert listing(held(3), lesson(3)) is None
    assert listing(held(3), lesson(2)) is None


@given(st.permutations(range(1, 7)))
def test_whatever_the_order_the_newest_revision_stands(order: list[int]) -> None:
    known = held()
    for revision in order:
        standing = listing(known, lesson(revision))
        if standing is not None:
            known = held(revision, listed=standing.listed)
    assert known.learning_revision == 6
