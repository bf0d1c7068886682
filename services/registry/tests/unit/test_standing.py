"""Statistics and listing."""

from hypothesis import given
from hypothesis import strategies as st

from pml_registry.domain.standing import Held, Standing, stand
from services.registry.tests.samples import UNNAMED, lesson


def held(revision: int = 0, *, listed: bool = False) -> Held:
    return Held(UNNAMED, False, listed, "", (), revision)


def test_the_first_success_lists_a_capability() -> None:
    assert stand(held(), lesson(1)) == Standing(listed=True, change="listed")


def test_without_a_success_it_stays_unlisted() -> None:
    unsuccessful = lesson(2, successes=0)
    assert stand(held(1), unsuccessful) == Standing(listed=False, change="learned")


def test_once_listed_it_stays_so() -> None:
    known = held(1, listed=True)
    assert stand(known, lesson(2, successes=0)) == Standing(listed=True, change="learned")


def test_an_older_or_equal_revision_changes_nothing() -> None:
    assert stand(held(3), lesson(3)) is None
    assert stand(held(3), lesson(2)) is None


@given(st.permutations(range(1, 7)))
def test_whatever_the_order_the_newest_revision_stands(order: list[int]) -> None:
    known = held()
    for revision in order:
        standing = stand(known, lesson(revision))
        if standing is not None:
            known = held(revision, listed=standing.listed)
    assert known.learning_revision == 6
