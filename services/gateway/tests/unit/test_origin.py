"""Access control of a gateway on loopback by host and origin."""

import pytest

from pml_gateway.domain.api.origin import Authority, Names, authority, is_loopback, names_of

PORT = 8080
OURS = Names()


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
def test_this_machine_is_let_in(host: str, origin: str | None) -> None:
    assert OURS.foreign([host], [origin] if origin else [], PORT) is None


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
def test_a_host_that_is_not_exactly_ours_is_foreign(host: str) -> None:
    told = OURS.foreign([host], [], PORT)
    assert told == f"the Host header {host!r} is none of ours"


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
def test_a_page_of_another_origin_is_foreign(origin: str) -> None:
    told = OURS.foreign(["127.0.0.1:8080"], [origin], PORT)
    assert told == f"the Origin {origin!r} is none of ours"


@pytest.mark.parametrize(
    ("hosts", "origins"),
    [
        ([], []),
        (["localhost:8080", "localhost:8080"], []),
        (["localhost:8080", "evil.example"], []),
        (["localhost:8080"], ["http://localhost:8080", "http://evil.example"]),
    ],
)
def test_a_request_names_us_once(hosts: list[str], origins: list[str]) -> None:
    assert "one Host header" in str(OURS.foreign(hosts, origins, PORT))


@pytest.mark.parametrize(
    ("host", "origin", "own_port", "let_in"),
    [
        ("localhost", "http://localhost", 80, True),
        ("localhost:80", "http://localhost", 80, True),
        ("localhost", "https://localhost", 443, True),
        ("localhost", "http://localhost", 443, False),
        ("localhost:8080", "http://localhost:8080", None, False),
    ],
)
def test_a_port_that_is_not_given_is_the_default(
    host: str, origin: str, own_port: int | None, let_in: bool
) -> None:
    assert (OURS.foreign([host], [origin], own_port) is None) is let_in


@pytest.mark.parametrize(
    ("host", "origin", "let_in"),
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
def test_a_name_we_were_given_is_let_in(host: str, origin: str, let_in: bool) -> None:
    names = names_of({"127.0.0.1"}, ["PML.example", "behind.example:9000", "2001:db8::1"])
    assert (names.foreign([host], [origin], PORT) is None) is let_in
    assert set(names.hosts) == {
        "127.0.0.1",
        "pml.example",
        "behind.example:9000",
        "[2001:db8::1]",
    }


def test_a_star_lets_all_in() -> None:
    names = names_of({"127.0.0.1"}, ["*"])
    assert names.foreign(["evil.example"], ["https://evil.example"], PORT) is None
    assert names.hosts == ("*",)


@pytest.mark.parametrize("text", ["http://pml.example", "pml.example/", "", "a b", "*.example"])
def test_what_is_no_host_cannot_be_configured(text: str) -> None:
    with pytest.raises(ValueError, match="is no host: write "):
        names_of((), [text])


def test_an_authority_reads_as_it_is_written() -> None:
    assert str(authority("[0::1]:80")) == "[::1]:80"
    assert authority("A_b.example") == Authority("a_b.example")


def test_loopback_is_what_only_this_machine_reaches() -> None:
    assert all(is_loopback(host) for host in ("127.0.0.1", "127.1.2.3", "localhost", "::1"))
    others = ("0.0.0.0", "::", "10.0.0.1", "", "127.evil.example")  # noqa: S104 - refused
    assert not any(is_loopback(host) for host in others)
