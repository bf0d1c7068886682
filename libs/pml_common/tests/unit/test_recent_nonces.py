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


def test_a_clock_that_is_set_back_brings_nothing_back() -> None:
    nonces = RecentNonces()
    assert nonces.fault("a", NOW, NOW) is None
    assert nonces.fault("b", NOW + 2 * AGE, NOW + 2 * AGE) is None
    assert nonces.fault("a", NOW, NOW) == OLDER


def test_what_is_remembered_is_bounded_and_nothing_older_accepted() -> None:
    nonces = RecentNonces(most=2)
    sent = [NOW + 100 * number for number in range(3)]
    assert [nonces.fault(str(each), each, NOW) for each in sent] == [None] * 3
    assert nonces.fault(str(sent[0]), sent[0], NOW) == OLDER
    assert nonces.fault("new", sent[0] + 99, NOW) == OLDER
    assert nonces.fault(str(sent[1]), sent[1], NOW) == "it was received before"
    assert nonces.fault("new", sent[1], NOW) is None


def test_clients_at_both_ends_of_what_is_accepted_are_not_refused_for_being_many() -> None:
    """Each sends 2,000 queries a second for a minute, one with a clock 29 s ahead, the other 29 s
    behind. Each query is replayed at once, 10 s later, and in the end."""
    nonces, sent = RecentNonces(), list[list[tuple[str, int]]]()
    for tick in range(60_000):
        now = NOW + tick
        queries = [
            (f"{tick} {ahead} {n}", now + ahead) for ahead in (29_000, -29_000) for n in (1, 2)
        ]
        assert [nonces.fault(*each, now) for each in queries] == [None] * 4
        sent.append(queries)
        assert all(nonces.fault(*each, now) for each in (*queries, *sent[max(0, tick - 10_000)]))
    now = NOW + 60_000
    assert all(nonces.fault(*each, now) for queries in sent for each in queries)
