"""Cursors of the gateway's lists."""

import pytest

from pml_gateway.domain.api.errors import InvalidRequest
from pml_gateway.domain.api.list_cursors import After, cut, decode_after, encode_after
from pml_gateway.domain.api.views import approvals_of
from services.gateway.tests.support.builders import AT, workflow
from services.gateway.tests.support.steps import after, asking


def test_a_cursor_is_read_as_it_was_written() -> None:
    after = After(AT, workflow().workflow_id)
    assert decode_after(encode_after(after)) == after
    assert decode_after(None, 7) is None


@pytest.mark.parametrize("cursor", ["", "a", "bm90aGluZw", "W10", "é"])
def test_what_is_no_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidRequest, match="must be `next_cursor` of a page"):
        decode_after(cursor)


def test_a_cursor_and_an_offset_exclude_each_other() -> None:
    with pytest.raises(InvalidRequest, match="exclude each other"):
        decode_after(encode_after(After(AT, workflow().workflow_id)), 7)


def test_a_page_has_a_last_entry_where_another_follows() -> None:
    assert cut([1, 2, 3], 2) == ([1, 2], 2)
    assert cut([1, 2], 2) == ([1, 2], None)


def test_a_page_of_approvals_is_of_workflows_that_asked_and_goes_on_after_its_last() -> None:
    first, second, silent = (workflow(key=key) for key in "abc")
    asked = [after(each, asking(each))[0] for each in (first, second)]
    page = approvals_of([silent, *asked], 2, 1)
    (shown,) = page.approvals
    assert (shown.workflow_id, page.total) == (first.workflow_id, 2)
    assert decode_after(page.next_cursor) == After(shown.expires_at, first.workflow_id)
    assert [each.workflow_id for each in approvals_of(asked, 2).approvals] == [
        first.workflow_id,
        second.workflow_id,
    ]
    assert approvals_of(asked, 2).next_cursor is None
