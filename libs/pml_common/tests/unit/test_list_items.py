"""Items of lists passed to a capability: JSON has null for absent ones."""

from pml_common.binding.patterns import ABSENT, AnyOf, Computed, FromResult, Items, Known
from pml_common.binding.resolve import pick


def test_an_absent_item_is_null() -> None:
    handed = Items((Known((ABSENT,), "o.none"), Known((1,)), Computed("x")))
    gone = Known((ABSENT, None), "o.none")
    assert pick(handed, (None,)) == AnyOf((gone, Known((1,)), Computed("x")))
    assert pick(handed, (0,)) == gone
    assert pick(handed, (1,)) == Known((1,))


def test_an_item_from_a_result_may_be_missing_there() -> None:
    found = FromResult("n1", ("a",))
    either = AnyOf((found, Known((None,))))
    assert pick(Items((found,)), (0,)) == either
    assert pick(Items((AnyOf((found, Known((1,)))),)), (0,)) == AnyOf((either, Known((1,))))
