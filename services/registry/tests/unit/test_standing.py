"""Statistics and listing."""

from hypothesis import given
from hypothesis import strategies as st

from pml_registry.domain.standing import Held, Standing, stand
from services.registry.tests.samples import lesson, record


def test_the_first_success_lists_a_capability() -> None:
    assert stand(Held(record()), lesson(1)) == Standing(listed=True, change="listed")


def test_without_a_success_it_stays_unlisted() -> None:
    unsuccessful = lesson(2, successes=0)
    assert stand(Held(record(), 1), unsuccessful) == Standing(listed=False, change="learned")


def test_once_listed_it_stays_so() -> None:
    known = Held(record().model_copy(update={"listed": True}), 1)
    assert stand(known, lesson(2, successes=0)) == Standing(listed=True, change="learned")


def test_an_older_or_equal_revision_changes_nothing() -> None:
    assert stand(Held(record(), 3), lesson(3)) is None
    assert stand(Held(record(), 3), lesson(2)) is None


@given(st.permutations(range(1, 7)))
def test_whatever_the_order_the_newest_revision_stands(order: list[int]) -> None:
    held = Held(record())
    for revision in order:
        standing = stand(held, lesson(revision))
        if standing is not None:
            held = Held(held.record, revision)
    assert held.learning_revision == 6
