"""Host and Origin headers that the gateway accepts."""

import pytest

from pml_gateway.domain.api.origin import (
    AllowedHosts,
    Authority,
    allowed_hosts,
    authority,
    is_loopback,
    origin,
)

PORT = 8080
OWN = AllowedHosts()


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("127.0.0.1:8080", None),
        ("LOCALHOST:8080", None),
        ("localhost:8080", "http://LocalHost:8080"),
        ("[::1]:8080", "http://[::1]:8080"),
        ("[0:0::1]:8080", "http://127.0.0.1:8080"),
    ],
)
def test_requests_from_this_machine_are_accepted(host: str, origin: str | None) -> None:
    assert OWN.rejection([host], [origin] if origin else [], PORT) is None


@pytest.mark.parametrize(
    "host",
    [
        "",
        "localhost",  # port 80
        "localhost:",
        "localhost:80800",
        "localhost:08080",
        "localhost:+8080",
        "localhost:8081",
        "localhost.:8080",
        "localhost:8080@evil.example",
        "localhost:1@evil.example:8080",
        "evil.example@localhost:8080",
        "evil.example:8080",
        "127.0.0.1.evil.example:8080",
        "127.0.0.1:8080/",
        "127.0.0.1:8080 ",
        "127.0.0.1:8080,evil.example",
        "127.1:8080",
        "2130706433:8080",
        "0.0.0.0:8080",
        "[::1",
        "::1:8080",
        "[::1%lo]:8080",
        "[::ffff:127.0.0.1]:8080",
        "[1:2:3]:8080",
        "[127.0.0.1]:8080",
        "ⓛocalhost:8080",
        "localhost:٨٠٨٠",
    ],
)
def test_a_host_that_is_not_exactly_an_own_one_is_rejected(host: str) -> None:
    reason = OWN.rejection([host], [], PORT)
    assert reason == f"the Host header {host!r} is not allowed"


@pytest.mark.parametrize(
    "origin",
    [
        "",
        "null",
        "http://",
        "http://[",
        "http://localhost",
        "http://localhost:3000",
        "https://localhost",
        "http://localhost:8080/",
        "http://localhost:8080@evil.example",
        "http://me@localhost:8080",
        "http://localhost.:8080",
        "http://localhost.evil.example:8080",
        "http://evil.example:8080",
        "http://evil.example/localhost:8080",
        "HTTP://localhost:8080",
        "file://localhost:8080",
        "chrome-extension://localhost:8080",
        "localhost:8080",
        "http://localhost:8080 http://localhost:8080",
    ],
)
def test_a_page_of_another_origin_is_rejected(origin: str) -> None:
    reason = OWN.rejection(["127.0.0.1:8080"], [origin], PORT)
    assert reason == f"the Origin {origin!r} is not allowed"


@pytest.mark.parametrize(
    ("hosts", "origins"),
    [
        ([], []),
        (["localhost:8080", "localhost:8080"], []),
        (["localhost:8080", "evil.example"], []),
        (["localhost:8080"], ["http://localhost:8080", "http://evil.example"]),
    ],
)
def test_a_request_has_one_host_and_at_most_one_origin(
    hosts: list[str], origins: list[str]
) -> None:
    assert "exactly one Host header" in str(OWN.rejection(hosts, origins, PORT))


@pytest.mark.parametrize(
    ("host", "origin", "own_port", "accepted"),
    [
        ("localhost", "http://localhost", 80, True),
        ("localhost:80", "http://localhost", 80, True),
        ("localhost", "https://localhost", 443, True),
        ("localhost", "http://localhost", 443, False),
        ("localhost:8080", "http://localhost:8080", None, False),
    ],
)
def test_a_port_that_is_not_given_is_the_default(
    host: str, origin: str, own_port: int | None, accepted: bool
) -> None:
    assert (OWN.rejection([host], [origin], own_port) is None) is accepted


@pytest.mark.parametrize(
    ("host", "origin", "accepted"),
    [
        ("pml.example", "https://pml.example", True),
        ("PML.example:443", "http://pml.example", True),
        ("pml.example:8080", "http://pml.example:8080", True),
        ("pml.example:9000", "https://pml.example", False),
        ("pml.example", "https://pml.example:9000", False),
        ("behind.example:9000", "http://behind.example:9000", True),
        ("behind.example", "http://behind.example:9000", False),
        ("behind.example:8080", "http://behind.example:9000", False),
        ("[2001:db8::1]:443", "https://[2001:DB8:0::1]", True),
    ],
)
def test_a_configured_name_is_accepted(host: str, origin: str, accepted: bool) -> None:
    names = allowed_hosts({"127.0.0.1"}, ["PML.example", "behind.example:9000", "2001:db8::1"])
    assert (names.rejection([host], [origin], PORT) is None) is accepted
    assert set(names.hosts) == {
        "127.0.0.1",
        "pml.example",
        "behind.example:9000",
        "[2001:db8::1]",
    }


def test_a_star_accepts_every_name() -> None:
    names = allowed_hosts({"127.0.0.1"}, ["*"])
    assert names.rejection(["evil.example"], ["https://evil.example"], PORT) is None
    assert names.hosts == ("*",)


@pytest.mark.parametrize("text", ["http://pml.example", "pml.example/", "", "a b", "*.example"])
def test_a_name_that_is_not_a_host_cannot_be_configured(text: str) -> None:
    with pytest.raises(ValueError, match="is not a host: write "):
        allowed_hosts((), [text])


def test_an_authority_is_normalised() -> None:
    assert str(authority("[0::1]:80")) == "[::1]:80"
    assert authority("A_b.example") == Authority("a_b.example")


def test_loopback_hosts_are_reached_from_this_machine_only() -> None:
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.1.2.3", "localhost", "::1"))
    others = ("0.0.0.0", "::", "10.0.0.1", "", "127.evil.example")  # noqa: S104 - refused
    assert not any(is_loopback(host) for host in others)


def test_an_origin_is_read_as_browsers_send_it() -> None:
    assert origin("HTTPS://App.example:443") == "https://app.example"
    assert origin("http://[::1]:5173") == "http://[::1]:5173"
    for text in ("app.example", "ftp://app.example", "https://app.example/", "null"):
        with pytest.raises(ValueError, match="is not an origin"):
            origin(text)


def test_a_page_of_a_named_origin_may_ask() -> None:
    allowed = allowed_hosts((), ("pml.example",), (origin("https://app.example"),))
    assert allowed.rejection(["pml.example"], ["https://app.example"], PORT) is None
    assert allowed.rejection(["pml.example"], ["https://other.example"], PORT) is not None
