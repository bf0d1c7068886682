"""Queries that are remembered, and those that are too old to be known."""

from pml_common.bus.query_macs import AGE_S, RecentNonces

NOW = 1_000_000
AGE = 1000 * AGE_S
OLDER = "it is older than what this replica remembers"


def test_a_nonce_is_accepted_once() -> None:
    nonces = RecentNonces()
    assert nonces.fault("a", NOW, NOW) is None
    assert nonces.fault("b", NOW, NOW) is None
    assert nonces.fault("a", NOW, NOW + AGE) == "it was received before"


def test_a_query_far_from_the_servers_time_is_refused_and_not_remembered() -> None:
    nonces = RecentNonces()
    said = "by the NATS server's clock; at most 30 s are accepted"
    assert nonces.fault("a", NOW - AGE - 100, NOW) == f"it was sent 30.1 s ago {said}"
    assert nonces.fault("a", NOW + AGE + 100, NOW) == f"it was sent 30.1 s ahead {said}"
    assert nonces.fault("a", NOW - AGE, NOW) is None
    assert nonces.fault("b", NOW + AGE, NOW) is None


def test_a_nonce_is_forgotten_only_once_its_query_is_too_old() -> None:
    """The latest possible time of a query that is received now."""
    nonces = RecentNonces()
    assert nonces.fault("a", NOW + AGE, NOW) is None
    assert nonces.fault("a", NOW + AGE, NOW + 2 * AGE) == "it was received before"
    assert nonces.fault("b", NOW + 2 * AGE + 1, NOW + 2 * AGE + 1) is None
    assert "30.0 s ago" in (nonces.fault("a", NOW + AGE, NOW + 2 * AGE + 1) or "")


def test_what_is_remembered_is_bounded_and_nothing_older_accepted() -> None:
    nonces = RecentNonces(most=2)
    assert [nonces.fault(str(number), NOW + number, NOW) for number in range(3)] == [None] * 3
    assert nonces.fault("0", NOW, NOW) == OLDER
    assert nonces.fault("new", NOW, NOW) == OLDER
    assert nonces.fault("1", NOW + 1, NOW) == "it was received before"
    assert nonces.fault("new", NOW + 1, NOW) is None
