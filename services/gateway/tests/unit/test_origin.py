"""Who may talk to a gateway on loopback."""

import pytest

from pml_gateway.domain.origin import LOOPBACK, foreign, is_loopback


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("127.0.0.1:8080", None),
        ("localhost", None),
        ("LOCALHOST:1", None),
        ("[::1]:8080", "http://[::1]:8080"),
        ("127.0.0.1:8080", "http://localhost:3000"),
        ("127.0.0.1", "https://127.0.0.1"),
    ],
)
def test_this_machine_is_let_in(host: str, origin: str | None) -> None:
    assert foreign(host, origin, LOOPBACK) is None


@pytest.mark.parametrize(
    ("host", "origin", "named"),
    [
        (None, None, "Host"),
        ("", None, "Host"),
        ("evil.example:8080", None, "evil.example"),
        ("127.0.0.1.evil.example", None, "evil.example"),
        ("[::1", None, "Host"),
        ("127.0.0.1", "http://evil.example", "evil.example"),
        ("127.0.0.1", "null", "null"),
        ("127.0.0.1", "http://[", "Origin"),
        ("127.0.0.1", "http://localhost.evil.example", "evil.example"),
    ],
)
def test_a_page_of_another_site_is_not(host: str | None, origin: str | None, named: str) -> None:
    assert named in str(foreign(host, origin, LOOPBACK))


def test_a_name_we_were_given_is_let_in_and_a_star_lets_all_in() -> None:
    assert foreign("pml.example", "https://pml.example", {"pml.example"}) is None
    assert foreign("evil.example", "https://evil.example", {"*"}) is None


def test_loopback_is_what_only_this_machine_reaches() -> None:
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.1.2.3", "localhost", "::1"))
    assert not any(is_loopback(host) for host in ("0.0.0.0", "::", "10.0.0.1", ""))  # noqa: S104 - refused
