"""Names of client sessions."""

from datetime import UTC, datetime, timedelta

import pytest

from pml_common.contracts.scope import Scope
from pml_gateway.domain.api.client_session import caller_key, event_id, session_key, told_until

SCOPE = Scope(org="acme", project="web")


def test_a_session_has_another_name_for_each_caller() -> None:
    names = {
        session_key(scope, principal, session_id)
        for scope in (SCOPE, Scope(org="acme", project="webs"))
        for principal, session_id in (("ada", "1"), ("ad", "a1"), ("ada", "2"), ("ada1", ""))
    }
    assert len(names) == 8
    assert session_key(SCOPE, "ada", "1") in names


def test_names_are_tokens_whatever_the_client_sends() -> None:
    assert session_key(SCOPE, "ada", "\udcff. *>").isalnum()
    assert caller_key(SCOPE, "ada") != caller_key(SCOPE, "eve")


BEGUN, NOW = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


@pytest.mark.parametrize(
    ("last", "until"),
    [
        (event_id(NOW), NOW),
        (event_id(NOW - timedelta(microseconds=1)), NOW - timedelta(microseconds=1)),
        (event_id(NOW + timedelta(days=1)), NOW),
        (None, BEGUN),
        ("", BEGUN),
        ("abc", BEGUN),
        ("9" * 18, NOW),
        ("9" * 19, BEGUN),
    ],
)
def test_the_id_of_an_event_tells_the_time_until_which_its_reader_knows(
    last: str | None, until: datetime
) -> None:
    assert told_until(last, BEGUN, NOW) == until
